"""The metric is in sortedness_accuracy.py, which evaluate loads on its own."""
