"""The share of each layer in a budget of multipliers, and what it then takes: cycles, memories, DSP blocks."""
