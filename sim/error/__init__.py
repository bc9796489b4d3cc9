"""How far golden values may be from the mathematics, and how far they reach."""
