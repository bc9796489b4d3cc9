"""A convolution: its unit, pixel by pixel or in tiles, and their plans."""
