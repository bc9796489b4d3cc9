"""The golden model: a layer of integers for each kind, and networks of them."""
