"""Libraries of standard cells: liberty files, what they say of each cell, and models of it."""
