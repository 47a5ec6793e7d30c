"""What trained models do: ablation, specialization, carries, pruning, length. Everything here computes rows."""
