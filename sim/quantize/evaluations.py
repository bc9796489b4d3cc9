"""How far a golden network is from the model that it was quantized from: measured once, then found again by content."""
import hashlib
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from circulant.sim import artifact
from circulant.sim.files.files import discard
from circulant.sim.files.schema import Number, Table
from circulant.sim.golden.network import Network
from circulant.sim.real.float_model import Model
from circulant.sim.refusal import Refusal
from circulant.sim.shape.sequences import Lengths

__all__ = ["Evaluations", "Judge"]

Judge = Callable[[Network], float]
"""The points that a network loses against its model on the data that the widths are picked on."""

KIND, VERSION = "circulant-evaluation", 1


class Evaluations:
    """Noise and loss of networks.

    Parameters:
        judge: measures the loss.
        model, samples: what the noise at the outputs is measured with: real inputs, a few.
        lengths: of the samples; None where all steps count.
        subject: what the judge looks at besides the network: model, data, metric, by their hashes.
        folder: keeps every figure under the hash of what it belongs to; None keeps them while this object lives.

    Members:
        made, found: how many figures were measured, and how many of them were there already.
    """

    def __init__(self, judge: Judge, model: Model, samples: ArrayLike, *, subject: str,
                 folder: str | Path | None = None, lengths: Lengths | None = None) -> None:
        self._judge, self._samples, self._lengths = judge, np.asarray(samples, np.float64), lengths
        self._exact = model.run(self._samples, lengths=lengths)
        self._power = float(np.square(self._exact).sum()) or 1.0
        self._subject = f"{subject} {artifact.digest_arrays({'samples': self._samples, 'exact': self._exact})}"
        self._folder, self._known = None if folder is None else Path(folder), dict[str, float]()
        self.made = self.found = 0

    def noise(self, network: Network) -> float:
        """Squared distance of the outputs from those of the model, in parts of their square."""
        return self._once("noise", network, lambda network: float(np.square(
            network.run(self._samples, lengths=self._lengths).real - self._exact).sum()) / self._power)

    def lost(self, network: Network) -> float:
        """The judge's answer."""
        return self._once("lost", network, self._judge)

    def _once(self, what: str, network: Network, measure: Judge) -> float:
        key = hashlib.sha256(f"{what} {network.hash} {self._subject}".encode()).hexdigest()
        if key not in self._known:
            kept = self._read(key)
            if kept is None:
                self._known[key] = measure(network)
                self.made += 1
                self._write(key, self._known[key])
            else:
                self._known[key] = kept
                self.found += 1
        return self._known[key]

    def _read(self, key: str) -> float | None:
        """A figure that was measured before; one that cannot be read is measured again."""
        if self._folder is None:
            return None
        try:
            found = artifact.read_json(self._folder / f"{key}.json", KIND, VERSION, Table({"value": Number()}))
        except Refusal:
            return None
        return float(found["value"])

    def _write(self, key: str, value: float) -> None:
        if self._folder is not None and math.isfinite(value):
            path = self._folder / f"{key}.json"
            if path.is_symlink() or not path.is_file():  # Whatever it is, it is no evaluation.
                discard(path)
            artifact.write_json(path, KIND, VERSION, {"value": value})
