"""Test vectors: integer inputs and the outputs that the golden model expects, in ``vectors.npz``."""
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from circulant.sim import artifact
from circulant.sim.arith.fixed import Integers
from circulant.sim.files.schema import Table, Text
from circulant.sim.public import public
from circulant.sim.refusal import Refusal
from circulant.sim.shape.sequences import Lengths, check_lengths

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
        lengths: (N,), the steps of each sequence, beyond which inputs and outputs do not count; None where all have T.
        more_inputs, more_outputs: those of further inputs and outputs of the network, by name.

    Raises:
        Refusal: when they are no integers of 64 bits or less, or the counts of inputs and outputs differ; as
            `circulant.sim.shape.sequences.check_lengths`.
    """

    inputs: Integers
    outputs: Integers
    network: str
    lengths: Lengths | None = None
    more_inputs: Mapping[str, Integers] = field(default_factory=dict)
    more_outputs: Mapping[str, Integers] = field(default_factory=dict)

    KIND = "circulant-vectors"
    VERSION = 2

    def __post_init__(self) -> None:
        for name, values in (("inputs", self.inputs), ("outputs", self.outputs), *self.more_inputs.items(),
                             *self.more_outputs.items()):
            require_integers(f"The {name} of vectors", values)
            if len(self.inputs) != len(values):
                raise Refusal(f"Vectors must have as many outputs as inputs, not {len(values)} and "
                              f"{len(self.inputs)}; make them again with Network.vectors")
        if self.lengths is not None:
            check_lengths("Vectors", self.lengths, self.inputs.shape)

    @property
    def steps(self) -> Lengths:
        """Input vectors of each sequence (N,); 1 of single vectors."""
        if self.lengths is not None:
            return self.lengths
        return np.full(len(self), self.inputs.shape[1] if self.inputs.ndim == 3 else 1)

    def __repr__(self) -> str:
        return (f"<Vectors {len(self)} × {self.inputs.shape[1:]} → {self.outputs.shape[1:]} of network "
                f"{self.network[:12]}>")

    def __len__(self) -> int:
        return len(self.inputs)

    def first(self, samples: int) -> "Vectors":
        """The first so many; all of them for 0."""
        if not samples:
            return self
        return replace(self, inputs=self.inputs[:samples], outputs=self.outputs[:samples],
                       lengths=None if self.lengths is None else self.lengths[:samples],
                       more_inputs={port: values[:samples] for port, values in self.more_inputs.items()},
                       more_outputs={port: values[:samples] for port, values in self.more_outputs.items()})

    @public
    def save(self, path: str | Path) -> str:
        """Write ``vectors.npz``; returns its hash."""
        lengths = {} if self.lengths is None else {"lengths": self.lengths}
        more = {f"{what} {name}": values for what, given in (("inputs", self.more_inputs),
                                                             ("outputs", self.more_outputs))
                for name, values in given.items()}
        return artifact.write_npz(path, self.KIND, self.VERSION, {
            "inputs": self.inputs, "outputs": self.outputs, **lengths, **more}, network=self.network)

    @classmethod
    @public
    def load(cls, path: str | Path) -> "Vectors":
        """Read what `save` wrote.

        Raises:
            Refusal: when the file is missing, damaged or of another version; those of version 1 knew no lengths, so
                that padding may have counted in them.
        """
        arrays, meta = artifact.read_npz(path, cls.KIND, cls.VERSION, Table({"network": Text(64)}, open=True))
        if missing := {"inputs", "outputs"} - arrays.keys():
            raise Refusal(f"{path} must hold 'inputs' and 'outputs', but {min(missing)!r} is missing; write it again")
        more = ({name.partition(" ")[2]: values for name, values in arrays.items() if name.startswith(f"{what} ")}
                for what in ("inputs", "outputs"))
        return cls(arrays["inputs"], arrays["outputs"], meta["network"], arrays.get("lengths"), *more)
