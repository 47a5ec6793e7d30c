"""Sets of sites that act together: joint interchange, searches for sets, how answers are wrong without them."""
