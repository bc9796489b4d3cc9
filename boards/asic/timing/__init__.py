"""Timing of a netlist, and what makes it shorter: stronger cells, and other structures of what is late."""
