"""The generators: from a golden network to Verilog, and in `circulant.hw.c` to C, which needs no amaranth.

The names below are fetched when they are first used.
"""
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from circulant.hw.design import Design, generate
    from circulant.hw.reload_words import writes

__all__ = ["Design", "generate", "writes"]


def __getattr__(name: str) -> object:
    from circulant.sim.public import fetched

    return fetched(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
