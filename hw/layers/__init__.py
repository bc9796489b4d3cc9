"""A unit for each kind of layer, and the parts that such units are made of."""
