"""The kinds of layers in hardware: each file of this folder registers plans, latency and unit when it is imported."""
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

__all__ = ["KINDS"]

KINDS = [import_module(each.name) for each in walk_packages([str(Path(__file__).parent)], f"{__package__}.")
         if not each.name.endswith("_c") and each.name != __name__]
