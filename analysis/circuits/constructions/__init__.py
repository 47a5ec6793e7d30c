"""Models whose circuits are known, to test methods of circuit discovery on."""
