"""Elaboration by Amaranth, without what takes much of its time and changes nothing."""
import gc
import importlib.metadata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["READ", "fast_elaboration"]

READ = "0.5.10"
"""The version of Amaranth whose private functions were read: of another one none is replaced."""


@contextmanager
def fast_elaboration() -> Iterator[None]:
    """While Amaranth elaborates: a tenth of its search for cycles of logic, fewer checks of each bit that it names, and
    no search for garbage. With an Amaranth other than `READ` the checks and the search for cycles are its own.

    Nearly all that it makes is garbage in the end. Whoever knows when calls ``gc.collect``, which then looks through
    what is new alone.
    """
    collects, frozen = gc.isenabled(), gc.get_freeze_count()
    gc.disable()
    if not frozen:
        gc.freeze()
    replaced = _replacements()
    before = [vars(place)[name] for place, name in replaced]
    for (place, name), function in replaced.items():
        setattr(place, name, function)
    try:
        yield
    finally:
        for (place, name), function in zip(replaced, before, strict=True):
            setattr(place, name, function)
        if not frozen:
            gc.unfreeze()
        if collects:
            gc.enable()


def _replacements() -> dict[tuple[Any, str], Any]:
    """By class and name; another version of Amaranth need not even have the classes."""
    if importlib.metadata.version("amaranth") != READ:
        return {}
    from circulant.hw.emit.netlist import REPLACED
    return REPLACED
