"""The registry of the kinds of layers: each file of this folder registers its forms when it is imported."""
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

__all__ = ["KINDS"]

KINDS = [import_module(f"{__package__}.{each.name}") for each in iter_modules([str(Path(__file__).parent)])
         if f"{__package__}.{each.name}" != __name__]
