"""A convolution: its unit, pixel by pixel or in tiles, and their plans."""
from circulant.hw.kinds.conv import conv, plan

__all__ = ["conv", "plan"]
