"""Arithmetic units: transforms, rounding and saturation, sigmoid and tanh."""
