"""The passes over the layers of a network, for which each kind registers its own, and what kinds have in common."""
