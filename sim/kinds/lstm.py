"""An LSTM layer in integers: torch.nn.LSTM, with a projection, and with the peepholes of Sak et al. 2014.

    i = sigmoid(W_ix x + W_iy y + p_i * c + b_i)        y and c of the step before
    f = sigmoid(W_fx x + W_fy y + p_f * c + b_f)
    g = tanh(W_gx x + W_gy y + b_g)
    c = f * c + i * g
    o = sigmoid(W_ox x + W_oy y + p_o * c + b_o)        c of this step
    m = o * tanh(c)
    y = W_ym m, or m without a projection
"""
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from circulant.sim.arith import batch_layout
from circulant.sim.arith.activation import Pwl, activation_names
from circulant.sim.arith.circulant import JointProduct, Product
from circulant.sim.arith.fixed import Format, Integers, Reals, fit, round_shift, rounding_bits, saturate
from circulant.sim.arith.trace import Recorder
from circulant.sim.kinds import cell
from circulant.sim.kinds.cell import FloatCell, Real, RecurrentLayer
from circulant.sim.kinds.matrix import PRODUCT_FIELDS, twiddle_fields
from circulant.sim.passes import bases, products, ranges
from circulant.sim.passes.error_propagation import PropagatedError, Rows, Step
from circulant.sim.passes.formats import Peaks, Spectral, Widths, product, table
from circulant.sim.passes.layer import Kind
from circulant.sim.passes.products import Tap, check, check_first_columns, spectra
from circulant.sim.passes.quantizing import check_fit, product_like
from circulant.sim.passes.rules import FORMAT, GATED, PRODUCT, PWL, SIZE
from circulant.sim.refusal import Refusal
from circulant.sim.shape.recurrent import check_formats, check_matrices, check_returns, padded
from circulant.sim.shape.sequences import Lengths

__all__ = ["GATES", "KIND", "PEEPHOLES", "FloatLstm", "Lstm"]


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
    tables = ("i", "f", "g", "o")

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
        out, (y, c) = self._through(x, state, self.initial(len(x)), record, lengths)
        return out, (y, c)

    def step(self, x: Integers, y: Integers, c: Integers) -> tuple[Integers, Integers]:
        """The next y (N, outputs) and c (N, hidden) from x (N, inputs), y and c."""
        return self.run(x[:, None], (y, c))[1]

    def _step(self, spectra: Integers, state: tuple[Integers, ...], record: Recorder | None) -> tuple[Integers, ...]:
        y, c = state
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


@dataclass(frozen=True, eq=False)
class FloatLstm(FloatCell):
    """torch.nn.LSTM, also with a projection, and with the peepholes of Sak et al. 2014: see `Lstm`.

    Parameters:
        outputs: length of y: that of the projection, else ``hidden``.
        weight_ih, weight_hh: first columns (4, P, q, k) of the gates i, f, g, o, over x and over y.
        bias_ih, bias_hh: (4, hidden).
        projection: first columns (P, q, k) from m to y, or None.
        peephole: (3, hidden), what i, f, o see of c, or None.
        returns: "last" or "sequence".
        hard: whether the gates are torch's Hardsigmoid and Hardtanh.
    """

    name: str
    inputs: int
    hidden: int
    outputs: int
    weight_ih: Reals
    weight_hh: Reals
    bias_ih: Reals
    bias_hh: Reals
    projection: Reals | None = None
    peephole: Reals | None = None
    returns: str = "last"
    hard: bool = False

    kind = "lstm"
    gates = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.projection is not None:
            check_first_columns(self.name, projection=(self.projection, (self.outputs, self.hidden)))
        elif self.outputs != self.hidden:
            raise Refusal(f"Layer {self.name!r} without a projection must give its {self.hidden} hidden units, not "
                          f"{self.outputs}; export it again")
        if self.peephole is not None:
            check(self.name, peephole=(self.peephole, (3, self.hidden)))

    @property
    def beyond(self) -> tuple[str, ...]:
        return () if self.projection is None else ("y",)

    @property
    def block_sizes(self) -> dict[str, int]:
        own = {} if self.projection is None else {"projection": self.projection.shape[-1]}
        return super().block_sizes | own

    @property
    def states(self) -> tuple[int, ...]:
        return self.outputs, self.hidden

    def _step(self, x: Reals, state: tuple[Reals, ...], tap: Tap) -> tuple[Reals, ...]:
        y, c = state
        gates = products.product(f"{self.name}.gates", self.bias, tap, {
            f"{self.name}.input_product": (self.weight_ih, x), f"{self.name}.recurrent_product": (self.weight_hh, y)})
        peephole = np.zeros((3, self.hidden)) if self.peephole is None else self.peephole
        before_i, before_f = gates[:, 0] + peephole[0] * c, gates[:, 1] + peephole[1] * c
        squash, bend = self.functions
        i, f, g = squash(before_i), squash(before_f), bend(gates[:, 2])
        c = f * c + i * g
        before_o = gates[:, 3] + peephole[2] * c
        o = squash(before_o)
        m = o * bend(c)
        y = m
        if self.projection is not None:
            name = f"{self.name}.projection"
            y = products.product(name, np.zeros((1, self.outputs)), tap, {name: (self.projection[None], m)})[:, 0]
        tap(f"{self.name}.sigmoid.input", np.stack([before_i, before_f, before_o], axis=1))
        for tensor, values in (("i", i), ("f", f), ("g", g), ("o", o), ("c", c), ("m", m), ("y", y)):
            tap(f"{self.name}.{tensor}", values)
        return y, c


@bases.activations.register
def _(layer: Lstm) -> dict[str, Pwl]:
    return {"sigmoid": layer.sigmoid, "tanh": layer.tanh, "tanh_cell": layer.tanh_cell}


@bases.quantize_layer.register
def _(layer: FloatLstm, input: Format, peaks: Peaks, bits: Widths) -> Lstm:
    name, state = layer.name, cell.state_format(layer, peaks, bits)
    pre = peaks.fit(bits.output, f"{name}.gates.output", f"{name}.sigmoid.input", bias=layer.bias,
                    clip=bits.output_clip)
    kept = peaks.fit(bits.cell, f"{name}.c")
    shared = cell.input_formats(layer, input, state, peaks, bits, sums=["gates"])
    projection = None
    if layer.projection is not None:
        rows = np.zeros(layer.projection.shape[0] * layer.projection.shape[2])
        projection = product(f"{name}.projection", layer.projection, bias=rows, input=state, output=state, peaks=peaks,
                             bits=bits)
    peephole = fit(0.0 if layer.peephole is None else float(np.abs(layer.peephole).max()), bits.weight_bits)
    sigmoid, tanh = activation_names(layer.hard)
    tables = table(sigmoid, pre, state, bits), table(tanh, pre, state, bits), table(tanh, kept, state, bits)
    return _made(layer, shared, pre=pre, projection=projection, peephole=peephole, kept=kept, tables=tables)


@bases.quantize_layer_like.register
def _(rule: Lstm, layer: FloatLstm) -> Lstm:
    cell.check_like(rule, layer)
    projection = None
    if layer.projection is not None and rule.projection is not None:
        check_fit(layer.name, [("projection", rule.projection.grid, spectra(layer.projection))])
        projection = product_like(rule.projection, layer.name, layer.projection, np.zeros(layer.outputs))
    if layer.peephole is not None:
        check_fit(layer.name, [("peepholes", rule.peephole_format, layer.peephole)])
    return _made(layer, cell.formats_like(rule), pre=rule.pre_format, projection=projection,
                 peephole=rule.peephole_format, kept=rule.cell, tables=(rule.sigmoid, rule.tanh, rule.tanh_cell))


def _made(layer: FloatLstm, shared: Spectral, pre: Format, projection: Product | None, peephole: Format, kept: Format,
          tables: tuple[Pwl, Pwl, Pwl]) -> Lstm:
    """
    Parameters:
        shared: formats of both matrices, that of the input first.
        pre: of the pre-activations; kept: of c.
        tables: sigmoid, tanh, and tanh of the cell.
    """
    weights = None if layer.peephole is None else np.asarray(peephole.quantize(layer.peephole))
    sigmoid, tanh, tanh_cell = tables
    return Lstm(layer.name, inputs=layer.inputs, hidden=layer.hidden, outputs=layer.outputs, returns=layer.returns,
                gates=cell.joint(shared, layer, pre), projection=projection, peephole=weights,
                peephole_format=peephole, cell=kept, sigmoid=sigmoid, tanh=tanh, tanh_cell=tanh_cell)


@bases.bitwidth_fields.register
def _(layer: Lstm) -> list[str]:
    return [*PRODUCT_FIELDS, "state_bits", "cell_bits", *twiddle_fields(layer)]


@bases.layer_bits.register
def _(layer: Lstm) -> int:
    seen = 0 if layer.peephole is None else layer.peephole.size * layer.peephole_format.width
    return seen + bases.layer_bits.dispatch(RecurrentLayer)(layer)


@bases.layer_worst_cases.register
def _(layer: Lstm, peak: float, steps: int) -> Iterator[tuple[str, float]]:
    """c can grow with every step."""
    gate, g = ranges.reached(layer.sigmoid), ranges.reached(layer.tanh)
    c, m = steps * gate * g, gate * ranges.reached(layer.tanh_cell)
    projected = [] if layer.projection is None else ranges.sums(f"{layer.name}.projection", [(layer.projection, m)])
    y = projected[-1][1] if projected else m
    y_kept = min(y, ranges.reach(layer.output_format))
    for role, matrix in layer.products.items():
        came = {"input_product": peak, "projection": m}.get(role, y_kept)
        yield from ranges.vector(f"{layer.name}.{role}", matrix, came)
    gates = ranges.sums(f"{layer.name}.gates", zip(layer.gates.parts, (peak, y_kept), strict=True))
    seen = 0.0 if layer.peephole is None else float(np.abs(layer.peephole_format.real(layer.peephole)).max())
    yield from (*gates, *projected, (f"{layer.name}.sigmoid.input", gates[-1][1] + seen * c))
    yield from ((f"{layer.name}.{tensor}", gate) for tensor in ("i", "f", "o"))
    yield from ((f"{layer.name}.{tensor}", value) for tensor, value in (("g", g), ("c", c), ("m", m), ("y", y)))


@bases.propagate.register
def _(layer: Lstm, exact: FloatLstm, trace: bases.Trace, known: bases.Known) -> bases.Known:
    rows = cell.gate_rows(layer, exact, "ifgo")
    if layer.projection is not None and exact.projection is not None:
        rows["y"] = Rows.of(layer.outputs, (layer.projection, exact.projection, layer.hidden))

    def advance(step: Step, real: Real, given: PropagatedError, *before: PropagatedError) -> list[PropagatedError]:
        y, c = before
        return _advanced(layer, exact, rows, step, real=real, x=given, y=y, c=c)

    return cell.over_time(layer, [("y", layer.outputs), ("c", layer.hidden)], trace, known, advance)


def _advanced(layer: Lstm, exact: FloatLstm, rows: dict[str, Rows], step: Step, real: Real, x: PropagatedError,
              y: PropagatedError, c: PropagatedError) -> list[PropagatedError]:
    pre, state, kept = layer.pre_format.step, layer.output_format.step, layer.cell.step
    before = {gate: step.product(values, rows[gate], x, y)
              for gate, values in zip("ifgo", np.moveaxis(real("gates.output"), 1, 0), strict=True)}

    def gate(name: str, seen: PropagatedError) -> PropagatedError:
        number, argument = PEEPHOLES.index(name), before[name]
        if exact.peephole is not None and layer.peephole is not None:
            weight = layer.peephole_format.real(layer.peephole[number])
            off = weight - exact.peephole[number]
            known = step.given(*(np.broadcast_to(part, seen.value.shape) for part in (weight, off, np.zeros_like(off))))
            argument += step.times(known, seen, pre)
        return step.renamed(real(name), step.bent(layer.sigmoid, real("sigmoid.input")[:, number], argument))

    i, f = gate("i", c), gate("f", c)
    g = step.renamed(real("g"), step.bent(layer.tanh, before["g"].value, before["g"]))
    new = step.renamed(real("c"), step.times(f, c, kept) + step.times(i, g, kept))
    m = step.renamed(real("m"), step.times(gate("o", new), step.bent(layer.tanh_cell, new.value, new), state))
    return [m if layer.projection is None else step.product(real("y"), rows["y"], m), new]


@bases.arguments.register
def _(layer: Lstm, trace: bases.Trace) -> Iterator[tuple[str, Pwl, Integers]]:
    yield f"{layer.name}.sigmoid", layer.sigmoid, trace[f"{layer.name}.sigmoid.input"].integers
    yield f"{layer.name}.tanh", layer.tanh, trace[f"{layer.name}.gates.output"].integers[..., 2, :]
    yield f"{layer.name}.tanh_cell", layer.tanh_cell, trace[f"{layer.name}.c"].integers


def _made_of(name: str, inputs: int, *, hidden: int, outputs: int, returns: str, input_product: Product,
             recurrent_product: Product, peephole_format: Format, cell: Format, sigmoid: Pwl, tanh: Pwl, tanh_cell: Pwl,
             projection: Product | None = None, peephole: Integers | None = None) -> Lstm:
    return Lstm(name, inputs, hidden, outputs, returns, gates=JointProduct((input_product, recurrent_product)),
                projection=projection, peephole=peephole, peephole_format=peephole_format, cell=cell, sigmoid=sigmoid,
                tanh=tanh, tanh_cell=tanh_cell)


KIND = Kind(Lstm, FloatLstm, {**GATED, "tanh": PWL, "tanh_cell": PWL, "cell": FORMAT, "peephole_format": FORMAT,
                              "outputs": SIZE}, {"projection": PRODUCT}, optional_arrays={"peephole": 2},
            make=_made_of)
