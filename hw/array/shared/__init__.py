"""One array for several layers: their programs behind each other, and the arbiter."""
