"""The floor under everything that computes: intervals, rows, files, locks, run folders."""
