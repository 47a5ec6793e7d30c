"""The metric is in digit_accuracy.py, which evaluate loads on its own."""
