"""Findings: plain sentences, each from rows that bear it."""
