"""The kinds of layers in C: each file of this folder whose name ends in _c registers its `hw.ctext.unit.stage`."""
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

__all__ = ["KINDS"]

KINDS = [import_module(each.name) for each in walk_packages([str(Path(__file__).parent)], f"{__package__}.")
         if each.name.endswith("_c") and each.name != __name__]
