"""Test vectors: integer inputs and the outputs that the golden model expects, in ``vectors.npz``."""
from dataclasses import dataclass, replace
from pathlib import Path

from circulant.sim import artifact
from circulant.sim.fixed import Integers
from circulant.sim.public import public
from circulant.sim.refusal import Refusal

__all__ = ["Vectors"]


@public
@dataclass(frozen=True, eq=False, repr=False)
class Vectors:
    """Integer inputs (N, T, inputs) or (N, inputs) and expected outputs (N, outputs) or (N, T, outputs).

    Parameters:
        network: hash of the network that computed the outputs.

    Raises:
        Refusal: when the counts of inputs and outputs differ.
    """

    inputs: Integers
    outputs: Integers
    network: str

    KIND = "circulant-vectors"
    VERSION = 1

    def __post_init__(self) -> None:
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
        arrays, meta = artifact.read_npz(path, cls.KIND, cls.VERSION)
        return cls(arrays["inputs"], arrays["outputs"], meta["network"])
