"""The kinds of layers in hardware: a file, or a folder, for each, with its unit, plans and latency."""
