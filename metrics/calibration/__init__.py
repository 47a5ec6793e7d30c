"""The metric is in calibration.py, which evaluate loads on its own."""
