"""The generators: from a golden network to Verilog, and in `circulant.hw.c` to C, which needs no amaranth.

The names below are fetched when they are first used.
"""
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from circulant.hw.design import Design, generate
    from circulant.hw.reload_words import writes

_HOME = {"Design": "design", "generate": "design", "writes": "reload_words"}

__all__ = ["Design", "generate", "writes"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"circulant.hw.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
