"""Head masks and pruning for transformers' own models, which lost both in version 5."""
