"""The metric is in exact_match.py, which evaluate loads on its own."""
