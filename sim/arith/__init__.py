"""Integer arithmetic: formats and rounding, transforms, block-circulant products, activation functions."""
