"""Attention, position encodings, pooling and the models."""
