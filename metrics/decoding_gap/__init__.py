"""The metric is in decoding_gap.py, which evaluate loads on its own."""
