"""Addition of two numbers, digit by digit."""
