"""Figures, each drawn from rows alone."""
