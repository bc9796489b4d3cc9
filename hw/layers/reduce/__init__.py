"""Units of layers that make one value or vector of many."""
