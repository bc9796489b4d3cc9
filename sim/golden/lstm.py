"""An LSTM layer in integers: torch.nn.LSTM, with a projection, and with the peepholes of Sak et al. 2014.

    i = sigmoid(W_ix x + W_iy y + p_i * c + b_i)        y and c of the step before
    f = sigmoid(W_fx x + W_fy y + p_f * c + b_f)
    g = tanh(W_gx x + W_gy y + b_g)
    c = f * c + i * g
    o = sigmoid(W_ox x + W_oy y + p_o * c + b_o)        c of this step
    m = o * tanh(c)
    y = W_ym m, or m without a projection
"""
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from circulant.sim.arith import batch_layout
from circulant.sim.arith.activation import Pwl
from circulant.sim.arith.circulant import JointProduct, Product
from circulant.sim.arith.fixed import Format, Integers, round_shift, rounding_bits, saturate
from circulant.sim.arith.trace import Recorder
from circulant.sim.golden.serial import (
    Arrays,
    activations,
    integers,
    layer_arrays,
    layer_fields,
    product_arrays,
    product_fields,
    read_product,
    read_pwl,
    reader,
)
from circulant.sim.refusal import Refusal
from circulant.sim.shape.recurrent import check_formats, check_matrices, check_returns, check_state, padded, through
from circulant.sim.shape.sequences import Lengths, counts
from circulant.sim.shape.state_layer import RecurrentLayer

__all__ = ["GATES", "PEEPHOLES", "Lstm"]

GATES = ("i", "f", "g", "o")
PEEPHOLES = ("i", "f", "o")


@dataclass(frozen=True, eq=False)
class Lstm(RecurrentLayer):
    """An LSTM over sequences that starts from y = 0, c = 0.

    The rows of ``gates`` are i, f, g, o, each padded to whole blocks on its own; its parts are those of x and of y.

    Parameters:
        outputs: length of y: that of the projection, else ``hidden``.
        returns: "last" for the last y, "sequence" for that of every step.
        projection: m to y; None without one.
        peephole: weights (3, hidden) of i, f, o, integers of the format ``peephole_format``; None without them.
        cell: format of c.
        sigmoid, tanh: of pre-activations; tanh_cell: of c. Their values, m and y have one format.

    Raises:
        Refusal: when sizes or formats contradict each other, or a product of gate and state could leave int64.
    """

    name: str
    inputs: int
    hidden: int
    outputs: int
    returns: str
    gates: JointProduct
    projection: Product | None
    peephole: Integers | None
    peephole_format: Format
    cell: Format
    sigmoid: Pwl
    tanh: Pwl
    tanh_cell: Pwl

    kind = "lstm"

    def __post_init__(self) -> None:
        check_returns(self.name, self.returns)
        self._check_sizes()
        pre, state = self.gates.output, self.output_format
        rules = [("sigmoid's argument", self.sigmoid.input, pre), ("tanh's argument", self.tanh.input, pre),
                 ("argument of the cell's tanh", self.tanh_cell.input, self.cell),
                 ("sigmoid's value", self.sigmoid.output, state), ("tanh's value", self.tanh.output, state),
                 ("value of the cell's tanh", self.tanh_cell.output, state)]
        if self.projection is not None:
            rules += [("projection's argument", self.projection.input, state),
                      ("projection's value", self.projection.output, state)]
        check_formats(self.name, rules)
        widest = max(rounding_bits(state.width + self.cell.width, state.frac) + 1,
                     rounding_bits(2 * state.width, 2 * state.frac - self.cell.frac) + 1,
                     rounding_bits(self.peephole_format.width + self.cell.width, self._peephole_shift) + 1)
        if widest > 63:
            raise Refusal(f"Layer {self.name!r}: the products of a gate must fit into 63 bits, but with the "
                          f"cell {self.cell} and the state {state} they do not; choose narrower ones")

    def _check_sizes(self) -> None:
        if self.projection is None and self.outputs != self.hidden:
            raise Refusal(f"Layer {self.name!r} without a projection must give its {self.hidden} hidden units, not "
                          f"{self.outputs}; export it again")
        if self.peephole is not None and self.peephole.shape != (3, self.hidden):
            raise Refusal(f"Layer {self.name!r}: the peepholes must have the shape {(3, self.hidden)}, not "
                          f"{self.peephole.shape}; export it again")
        form = self.peephole_format
        if self.peephole is not None and (self.peephole.min() < form.lo or self.peephole.max() > form.hi):
            raise Refusal(f"Layer {self.name!r}: the peepholes must lie in the {form}, from {form.lo} to {form.hi}, "
                          f"not from {self.peephole.min()} to {self.peephole.max()}; quantize it again")
        k = self.gates.block_size
        x, y, m = (padded(size, k) for size in (self.inputs, self.outputs, self.hidden))
        matrices: dict[str, Product | JointProduct] = {"gates": self.gates}
        check_matrices(self.name, matrices if self.projection is None else matrices | {"projection": self.projection},
                       {"x": [self.gates.parts[0]]}, {"gates": (4 * m, x, y), "projection": (y, m)})

    @property
    def products(self) -> dict[str, Product]:
        parts = {"input_product": self.gates.parts[0], "recurrent_product": self.gates.parts[1]}
        return parts | ({} if self.projection is None else {"projection": self.projection})

    @property
    def _peephole_shift(self) -> int:
        return self.peephole_format.frac + self.cell.frac - self.pre_format.frac

    def initial(self, count: int) -> tuple[Integers, Integers]:
        """The states y (N, outputs) and c (N, hidden) that ``count`` sequences start from."""
        return np.zeros((count, self.outputs), np.int64), np.zeros((count, self.hidden), np.int64)

    def run(self, x: Integers, state: tuple[Integers, Integers] | None = None, record: Recorder | None = None,
            lengths: Lengths | None = None) -> tuple[Integers, tuple[Integers, Integers]]:
        """Outputs of sequences (N, T, inputs) that go on from a state (y, c), and the last state."""
        start = self.initial(len(x))
        if state is not None:
            for given, rule in zip(state, start, strict=True):
                check_state(self.name, given, rule)
            start = state
        of_x, of_y = self.gates.parts
        k = of_x.block_size
        vectors = batch_layout.spread(x, of_x.columns, k)
        spectra = of_x.spectra(vectors)

        def step(t: int, y: Integers, c: Integers) -> tuple[Integers, ...]:
            driven = spectra[:, :, t, :y.shape[-1]]
            if record is not None:
                record.vector(f"{self.name}.input_product.input", vectors[:, :, t, :y.shape[-1]], self.inputs,
                              self.input_format)
                record.spectral(f"{self.name}.input_product.spectrum", driven, of_x.spectrum)
            return self._step(driven, y, c, record)

        ys, (y, c) = through(step, counts(lengths, *x.shape[:2]), (
            batch_layout.spread(start[0], of_y.columns, k), batch_layout.spread(start[1], padded(self.hidden, k), k)),
            self.returns)
        return batch_layout.rows(ys, self.outputs), (batch_layout.rows(y, self.outputs),
                                                     batch_layout.rows(c, self.hidden))

    def step(self, x: Integers, y: Integers, c: Integers) -> tuple[Integers, Integers]:
        """The next y (N, outputs) and c (N, hidden) from x (N, inputs), y and c."""
        return self.run(x[:, None], (y, c))[1]

    def _step(self, spectra: Integers, y: Integers, c: Integers, record: Recorder | None) -> tuple[Integers, Integers]:
        """The next y and c (k, q, N) from the spectra of x, y and c."""
        spectra_y, one = self.gates.parts[1].spectra(y), self.output_format.frac
        sums = self.gates.sums(spectra, spectra_y)
        before = np.split(self.gates.values(sums, spent=record is None), 4, axis=1)
        before[0], before[1] = self._peeked(before[0], 0, c), self._peeked(before[1], 1, c)
        i, f, g = self.sigmoid(before[0]), self.sigmoid(before[1]), self.tanh(before[2])
        new = round_shift(i * g, 2 * one - self.cell.frac)
        c = batch_layout.clear(saturate(round_shift(f * c, one) + new, self.cell.width), self.hidden)
        before[3] = self._peeked(before[3], 2, c)
        o = self.sigmoid(before[3])
        m = batch_layout.clear(saturate(round_shift(o * self.tanh_cell(c), one), self.output_format.width), self.hidden)
        following = m
        if self.projection is not None:
            spectra_m = self.projection.spectra(m)
            projected = self.projection.sums(spectra_m)
            following = batch_layout.clear(self.projection.values(projected), self.outputs)
        if record is not None:
            record.vector(f"{self.name}.recurrent_product.input", y, self.outputs, self.output_format)
            record.spectral(f"{self.name}.recurrent_product.spectrum", spectra_y, self.gates.parts[1].spectrum)
            record.product(f"{self.name}.gates", self.gates, sums, self.hidden, gates=4)
            record.vector(f"{self.name}.sigmoid.input", np.concatenate([before[0], before[1], before[3]], axis=1),
                          self.hidden, self.pre_format, gates=3)
            for tensor, values in (("i", i), ("f", f), ("g", g), ("o", o), ("m", m)):
                record.vector(f"{self.name}.{tensor}", values, self.hidden, self.output_format)
            record.vector(f"{self.name}.c", c, self.hidden, self.cell)
            if self.projection is not None:
                record.vector(f"{self.name}.projection.input", m, self.hidden, self.output_format)
                record.spectral(f"{self.name}.projection.spectrum", spectra_m, self.projection.spectrum)
                record.product(f"{self.name}.projection", self.projection, projected, self.outputs)
            record.vector(f"{self.name}.y", following, self.outputs, self.output_format)
        return following, c

    def _peeked(self, pre: Integers, gate: int, c: Integers) -> Integers:
        """The pre-activations of a gate with what it sees of c."""
        if self._peepholes is None:
            return pre
        seen = round_shift(self._peepholes[..., gate, None] * c, self._peephole_shift)
        return np.asarray(saturate(pre + seen, self.pre_format.width))

    @cached_property
    def _peepholes(self) -> Integers | None:
        """(k, q, 3)."""
        k = self.gates.block_size
        return None if self.peephole is None else batch_layout.spread(self.peephole, padded(self.hidden, k), k)


@layer_arrays.register
def _(layer: Lstm) -> dict[str, Integers]:
    return product_arrays(layer) | ({} if layer.peephole is None else {f"{layer.name}.peephole": layer.peephole})


@activations.register
def _(layer: Lstm) -> dict[str, Pwl]:
    return {"sigmoid": layer.sigmoid, "tanh": layer.tanh, "tanh_cell": layer.tanh_cell}


@layer_fields.register
def _(layer: Lstm) -> dict[str, Any]:
    return {**product_fields(layer), "hidden": layer.hidden, "returns": layer.returns, "cell": layer.cell.as_json(),
            "peephole_format": layer.peephole_format.as_json(), "outputs": layer.outputs}


@reader(Lstm.kind)
def _read(entry: dict[str, Any], arrays: Arrays) -> Lstm:
    name = entry["name"]
    tables = {role: read_pwl(entry, arrays, role) for role in ("sigmoid", "tanh", "tanh_cell")}
    return Lstm(name, entry["inputs"], entry["hidden"], entry["outputs"], entry["returns"],
                gates=JointProduct((read_product(entry, arrays, "input_product"),
                                    read_product(entry, arrays, "recurrent_product"))),
                projection=read_product(entry, arrays, "projection") if "projection" in entry else None,
                peephole=integers(arrays, f"{name}.peephole", 2) if f"{name}.peephole" in arrays else None,
                peephole_format=Format.from_json(entry["peephole_format"]), cell=Format.from_json(entry["cell"]),
                **tables)
