"""From elaborated units to Verilog: shared modules, memory images, and what is counted in the text."""
