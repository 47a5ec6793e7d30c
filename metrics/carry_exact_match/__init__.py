"""The metric is in carry_exact_match.py, which evaluate loads on its own."""
