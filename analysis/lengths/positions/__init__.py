"""The mathematics of position encodings."""
