"""Tasks, corpora and tokenizers."""
