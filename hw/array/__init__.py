"""The lane array: R × C lanes, several inverse transforms, joint products and projections, for layers of any size."""
