"""Flipped bits of first columns beside flipped bits of spectra: what a memory of either costs a network.

A circuit that stored first columns would transform them when it reads them. Golden computes with the spectra of such
columns in a grid that is too fine for its rounding to count, so that the flips alone differ.
"""
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from circulant.faults.campaign import Draw
from circulant.run.kept import data_of, model_of
from circulant.run.quantization import calibration, float_model, widths
from circulant.run.run_folder import Run, require
from circulant.sim.arith.circulant import pack
from circulant.sim.arith.fixed import Format, Integers
from circulant.sim.arith.weight_grid import WeightGrid
from circulant.sim.golden.faults import placed, wrong
from circulant.sim.golden.network import Network
from circulant.sim.kinds.registry import layer_as_json, layer_from_json
from circulant.sim.passes.bases import layer_arrays
from circulant.sim.passes.formats import fit_least
from circulant.sim.quantize.quantize import calibrate, grids, quantize
from circulant.sim.shape.graph import Node

__all__ = ["Columns"]

FINER, WIDTH = 12, 30
"""Fraction bits of a spectrum beyond those of the finest first columns, and its bits."""


@dataclass(frozen=True, eq=False)
class Columns:
    """A network whose memories hold first columns, of as many bits as the spectra of another.

    Parameters:
        spectra: the other one, whose memories have the same words and bits.
        fine: with the spectra of the first columns.
        first: by memory, first columns (p, q, k), integers.
        shifts: by memory, the fraction bits that its spectra have beyond them.
        data: on which both are scored.
    """

    spectra: Network
    fine: Network
    first: dict[str, Integers]
    shifts: dict[str, int]
    data: Any

    @classmethod
    def of(cls, run: Run) -> "Columns":
        """The first columns of a quantized run."""
        trained = require(run, "train")
        data = data_of(run, trained, lambda *_: None)
        spectra, table = Network.load(run.folder), run.experiment.tables()["quantization"]
        exact = float_model(model_of(run, trained, False), data, spectra.name)
        peaks = calibrate(exact, *calibration(data, table["calibration"]))
        # Spectra as they were trained, hence first columns.
        found = quantize(exact, peaks, **(widths(table).as_dict() | {"weight_bits": 18}))
        real = {path: _first(found, path) for path in spectra.memories if path.endswith(".weights")}
        forms = {path: fit_least(each, spectra.memories[path].width) for path, each in real.items()}
        frac = max(form.frac for form in forms.values()) + FINER
        fine = quantize(exact, peaks, **(widths(table).as_dict() | {
            "grids": dict.fromkeys(grids(spectra), WeightGrid(Format(WIDTH, frac)))}))
        made = cls(spectra, fine, {path: forms[path].quantize(each) for path, each in real.items()},
                   {path: frac - form.frac for path, form in forms.items()}, data)
        return replace(made, fine=made._with(made.first))

    def _with(self, first: dict[str, Integers]) -> Network:
        """The network with these first columns."""
        arrays = {self.fine.memories[path].array: np.rint(np.ldexp(
            pack(np.fft.rfft(each), each.shape[-1]), self.shifts[path])).astype(np.int64)
            for path, each in first.items()}
        nodes = []
        for node in self.fine.nodes:
            own = layer_arrays(node.layer)
            nodes.append(Node(layer_from_json(layer_as_json(node.layer), {
                name: arrays.get(name, array) for name, array in own.items()}), node.sources))
        return replace(self.fine, nodes=tuple(nodes))

    def scores(self, draws: Sequence[Draw]) -> list[float]:
        """The metric of the test set with each draw in the memories of first columns: the very bits that it flips in
        those of spectra."""
        return [self._score(self._with(self.first | {
            path: wrong(self.first[path], memory, faults) for memory, faults in placed(
                self.spectra, draw.faults(self.spectra)) for path in (faults[0].memory,)})) for draw in draws]

    def _score(self, network: Network) -> float:
        from circulant.training.scoring import score

        return float(score(network, network.vectors(self.data.test_x, lengths=self.data.test_lengths), self.data))


def _first(network: Network, path: str) -> np.ndarray:
    """First columns (p, q, k) of a matrix, real."""
    layer, _, role = path.removesuffix(".weights").rpartition(".")
    product = next(each for each in network.layers if each.name == layer).products[role]
    packed = product.grid.real(product.weights)
    k = packed.shape[-1]
    half = np.zeros((*packed.shape[:-1], k // 2 + 1), complex)
    half[..., 0] = packed[..., 0]
    if k > 1:
        half[..., k // 2] = packed[..., 1]
        half[..., 1:k // 2] = packed[..., 2::2] + 1j * packed[..., 3::2]
    return np.fft.irfft(half, n=k) if k > 1 else packed
