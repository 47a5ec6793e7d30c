"""Sites, one sweep over them, and what takes the place of what was there."""
