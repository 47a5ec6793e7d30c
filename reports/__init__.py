"""Figures, cards and the report. Everything here reads rows and computes nothing."""
