"""Hub repositories and model cards."""
