"""Recipes, the training loop on accelerate, checkpoints and evaluation."""
