"""Activity and energy of a netlist."""
