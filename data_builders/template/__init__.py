"""What `headcount new` writes: files that run as they are, to start from."""
