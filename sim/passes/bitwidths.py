"""Bits of every kind of tensor, of a whole network or of a layer, a matrix of it, by name."""
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from circulant.sim.arith.fixed import Format
from circulant.sim.arith.multiplier import EXACT, check_multiplier
from circulant.sim.arith.segments import ERROR, check_table
from circulant.sim.arith.weight_grid import WeightGrid
from circulant.sim.refusal import Refusal, nearest

__all__ = ["DERIVED", "RULES", "WEIGHT_SCALES", "Widths"]

WEIGHT_SCALES = ("matrix", "row")
"""Parts with a binary point of their own: a matrix, or each of its block rows."""

RULES = {
    "weight_bits": (2, 18), "activation_bits": (4, 24), "spectrum_bits": (4, 26), "product_bits": (4, 32),
    "twiddle_bits": (4, 20), "input_bits": (4, 24), "output_bits": (4, 24), "state_bits": (4, 24), "cell_bits": (4, 24),
    "spectrum_clip": (0, 8), "product_clip": (0, 8), "output_clip": (0, 8),
}
"""The least and the greatest value of each width."""

DERIVED = ("spectrum_bits", "product_bits", "input_bits", "output_bits", "state_bits", "cell_bits")
"""Fields in which 0 stands for a width that follows from `Widths.activation_bits`."""


@dataclass(frozen=True)
class Widths:
    """Bits of every kind of tensor; the binary points follow from the data.

    Parameters:
        weight_bits: quantized spectra of the weights, 2 to 18.
        activation_bits: what the next five do not say otherwise, 4 to 24.
        spectrum_bits: spectra of the data, 4 to 26; 0 for one more than ``activation_bits``, so that a sum of two fits
            an 18-bit multiplier port at 16 bits.
        product_bits: sums of products before the inverse transform, 4 to 32; 0 for eight more than ``activation_bits``.
        twiddle_bits: fraction bits of twiddle factors, 4 to 20.
        weight_scale: "matrix" for one binary point of all weights of a matrix, "row" for one of each block row, up to
            seven bits apart.
        activation_table: how sigmoid and tanh are computed, of `sim.arith.activation.METHODS`.
        activation_error: how far their tables may be from the functions, besides their rounding.
        segments: lines of a table at the most; 0 for as many as ``activation_error`` asks for.
        input_bits: inputs of the network.
        output_bits: what products give: pre-activations, and the outputs of a Linear.
        state_bits: gates, states and outputs of a recurrent layer.
        cell_bits: the cell of an LSTM.
        spectrum_clip, product_clip, output_clip: integer bits, 0 to 8, that such a format has less than the data needs;
            that many more are behind the binary point, and what is out of range saturates.
        tensors: values of fields for a layer or a matrix, by name: ``{"gru.weight_bits": 8}``, or
            ``{"gru.recurrent_product.weight_bits": 7}`` for the matrix U alone. The longer name wins.
        grids: by matrix the values that the weights have already, as after training on them.
        formats: by activation layer the format of its outputs, where a quantizer of the model states it. The layer in
            front of it is quantized with ``whole``.
        multiplier: of the products of spectra, one of `circulant.sim.arith.multiplier.KINDS`.
        whole: whether a linear, conv, scale, residual sum or mean keeps all of its bits, as far as `RULES` allow, in
            place of ``product_bits`` and ``output_bits``.

    Raises:
        Refusal: when a field is out of its range.
    """

    weight_bits: int = 12
    activation_bits: int = 16
    spectrum_bits: int = 0
    product_bits: int = 0
    twiddle_bits: int = 16
    weight_scale: str = "matrix"
    activation_table: str = "pwl"
    activation_error: float = ERROR
    segments: int = 0
    input_bits: int = 0
    output_bits: int = 0
    state_bits: int = 0
    cell_bits: int = 0
    spectrum_clip: int = 0
    product_clip: int = 0
    output_clip: int = 0
    tensors: Mapping[str, int] = field(default_factory=dict)
    grids: Mapping[str, WeightGrid] = field(default_factory=dict)
    formats: Mapping[str, Format] = field(default_factory=dict)
    multiplier: str = EXACT
    whole: bool = False

    def __post_init__(self) -> None:
        for name in NAMES:
            _check(name, name, getattr(self, name))
        if self.weight_scale not in WEIGHT_SCALES:
            raise Refusal(f"weight_scale must be {' or '.join(WEIGHT_SCALES)}, not {self.weight_scale!r}"
                          f"{nearest(self.weight_scale, WEIGHT_SCALES)}")
        check_multiplier(self.multiplier)
        check_table(self.activation_table, self.activation_error, self.segments)
        for path, value in self.tensors.items():
            place, _, name = path.rpartition(".")
            if not place or name not in NAMES:
                raise Refusal(f"A width must be named LAYER.FIELD with a field of {', '.join(NAMES)}, not {path!r}"
                              f"{nearest(name, NAMES)}")
            _check(path, name, value)

    @property
    def spectrum(self) -> int:
        return self.spectrum_bits or self.activation_bits + 1

    @property
    def product(self) -> int:
        return self.product_bits or self.activation_bits + 8

    @property
    def input(self) -> int:
        return self.input_bits or self.activation_bits

    @property
    def output(self) -> int:
        return self.output_bits or self.activation_bits

    @property
    def value(self) -> int:
        """Bits of what a linear, conv, scale, residual sum or mean gives."""
        return RULES["output_bits"][1] if self.whole else self.output

    @property
    def state(self) -> int:
        return self.state_bits or self.activation_bits

    @property
    def cell(self) -> int:
        return self.cell_bits or self.activation_bits

    def of(self, path: str) -> "Widths":
        """The widths of a layer ``"gru"`` or of a matrix ``"gru.recurrent_product"``."""
        found: dict[str, Any] = {}
        for key in sorted(self.tensors, key=len):
            place, _, name = key.rpartition(".")
            if path == place or path.startswith(f"{place}."):
                found[name] = self.tensors[key]
        return replace(self, **found) if found else self

    def as_dict(self) -> dict[str, Any]:
        """Every field by its name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def check_names(self, paths: Collection[str]) -> None:
        """
        Raises:
            Refusal: when ``tensors`` names something else than the layers and matrices ``paths``.
        """
        for place in (*(key.rpartition(".")[0] for key in self.tensors), *self.grids, *self.formats):
            if place not in paths:
                raise Refusal(f"A width must be given to a layer or matrix of the network, not to {place!r}"
                              f"{nearest(place, list(paths))}; there are {', '.join(paths)}")


NAMES = tuple(RULES)


def _check(what: str, name: str, value: object) -> None:
    lo, hi = RULES[name]
    if not isinstance(value, int) or not (lo <= value <= hi or (value == 0 and name in DERIVED)):
        raise Refusal(f"{what} must be from {lo} to {hi}, not {value!r}; choose a width in that range")

