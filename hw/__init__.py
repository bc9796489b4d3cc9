"""The generators: from a golden network to Verilog."""
from circulant.hw.design import Design, generate

__all__ = ["Design", "generate"]
