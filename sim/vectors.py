"""Test vectors: integer inputs and the outputs that the golden model expects, in ``vectors.npz``."""
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from circulant.sim import artifact
from circulant.sim.fixed import Integers
from circulant.sim.public import public
from circulant.sim.refusal import Refusal
from circulant.sim.schema import Table, Text

__all__ = ["Vectors"]


def require_integers(what: str, values: Any) -> None:
    """
    Raises:
        Refusal: when it is no array of samples, or one of anything but integers that int64 holds.
    """
    array = isinstance(values, np.ndarray) and values.ndim > 0
    if not array or values.dtype.kind not in "iu" or (values.dtype == np.uint64 and (values >> 63).any()):
        given = f"{values.dtype} of shape {values.shape}" if isinstance(values, np.ndarray) else type(values).__name__
        raise Refusal(f"{what} must be an array of integers of 64 bits or less, not {given}; make them with "
                      "Network.vectors")


@public
@dataclass(frozen=True, eq=False, repr=False)
class Vectors:
    """Integer inputs (N, T, inputs) or (N, inputs) and expected outputs (N, outputs) or (N, T, outputs).

    Parameters:
        network: hash of the network that computed the outputs.

    Raises:
        Refusal: when they are no integers of 64 bits or less, or the counts of inputs and outputs differ.
    """

    inputs: Integers
    outputs: Integers
    network: str

    KIND = "circulant-vectors"
    VERSION = 1

    def __post_init__(self) -> None:
        for name, values in (("inputs", self.inputs), ("outputs", self.outputs)):
            require_integers(f"The {name} of vectors", values)
        if len(self.inputs) != len(self.outputs):
            raise Refusal(f"Vectors must have as many outputs as inputs, not {len(self.outputs)} and "
                          f"{len(self.inputs)}; make them anew with Network.vectors")

    def __repr__(self) -> str:
        return (f"<Vectors {len(self)} × {self.inputs.shape[1:]} → {self.outputs.shape[1:]} of network "
                f"{self.network[:12]}>")

    def __len__(self) -> int:
        return len(self.inputs)

    def first(self, samples: int, streams: int = 1) -> "Vectors":
        """The first so many; all of them for 0.

        Raises:
            Refusal: when they are less than two for each of the ``streams`` that a circuit takes in turns: its pace is
                seen from the end of one to the end of the next.
        """
        if not samples:
            return self
        if samples < 2 * streams:
            raise Refusal(f"simulation.samples must be at least {2 * streams}, two for each stream, to show the pace, "
                          f"not {samples}; choose more, or 0 for all")
        return replace(self, inputs=self.inputs[:samples], outputs=self.outputs[:samples])

    @public
    def save(self, path: str | Path) -> str:
        """Write ``vectors.npz``; returns its hash."""
        return artifact.write_npz(path, self.KIND, self.VERSION, {"inputs": self.inputs, "outputs": self.outputs},
                                  network=self.network)

    @classmethod
    @public
    def load(cls, path: str | Path) -> "Vectors":
        """Read what `save` wrote.

        Raises:
            Refusal: when the file is missing, damaged or of another version.
        """
        arrays, meta = artifact.read_npz(path, cls.KIND, cls.VERSION, Table({"network": Text(64)}, open=True))
        if missing := {"inputs", "outputs"} - arrays.keys():
            raise Refusal(f"{path} must hold 'inputs' and 'outputs', but {min(missing)!r} is missing; write it anew")
        return cls(arrays["inputs"], arrays["outputs"], meta["network"])
