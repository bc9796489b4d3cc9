"""Torch models in other words: the same layers, as strangers write them."""
from importlib import import_module

from tests.torch_programs.judging import Verdict, judge
from tests.torch_programs.program import PROGRAMS, Program

__all__ = ["PROGRAMS", "Program", "Verdict", "judge"]

for section in ("states", "moves", "arithmetic", "functions", "forms"):
    import_module(f"{__name__}.{section}")
