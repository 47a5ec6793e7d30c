"""Figures, drawn from rows alone."""
