"""Torch models in other words: the same layers, as strangers write them.

One list serves `python -m benchmarks door` and the tests.
"""
from importlib import import_module

from benchmarks.torch_programs.judging import Verdict, counted, judge
from benchmarks.torch_programs.program import PROGRAMS, Program

__all__ = ["PROGRAMS", "Program", "Verdict", "counted", "judge"]

for section in ("states", "moves", "arithmetic", "functions", "forms"):
    import_module(f"{__name__}.{section}")
