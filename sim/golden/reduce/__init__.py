"""Layers that make one value or vector of many: of a vector its greatest place, of a sequence its mean or maximum."""
