"""Faults planted in generated Verilog, and how many of them the checker finds."""
from benchmarks.mutation.measure import DESIGNS, measure

__all__ = ["DESIGNS", "measure"]
