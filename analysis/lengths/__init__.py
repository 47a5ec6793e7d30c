"""How far models generalise, and why not further."""
