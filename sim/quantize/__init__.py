"""From float64 to integers: formats, bit widths, and the search for them."""
