"""What each layer gets of a budget of multipliers, and what it then takes: cycles, memories, DSP blocks."""
