"""What heads do: ablation, maps, specialization, importance, pruning, subsets."""
