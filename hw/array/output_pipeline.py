"""Behind the array: a chain takes the sums of its rows one after the other, and transforms them back.

``re = s1 - s3`` and ``im = s1 + s2``; rounding to the product's format; inverse FFT; rounding to that of y; bias. A
spectral product ends with its sums: it has no bias, and the cycles of the inverse FFT are those of registers.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from amaranth.hdl import Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.decoder import Watch, watched
from circulant.hw.arith.fft import FftShape, InverseFft, fft_latency, transform_steps
from circulant.hw.arith.fixed import round_shift, rounded_sum, saturate
from circulant.hw.array.mac_row import begins_with_half
from circulant.hw.array.program import Program
from circulant.hw.emit.image import Image
from circulant.hw.emit.target import Platform, Rom, gates_clocks, instances, packed
from circulant.hw.reload.config import Config
from circulant.hw.stream.pipeline import LEVELS, Lives, delay, per_matrix, registers, update, when

__all__ = ["OutputPipeline", "chain_image", "chain_output", "chain_width", "pipeline_latency", "route_layout"]

K = TypeVar("K")


def route_layout(program: Program) -> data.StructLayout:
    """Where a row goes: the memory of its gate, and the place of its block there."""
    return data.StructLayout({
        "valid": 1, "completes": 1,
        "matrix": range(max(2, len(program.matrices))),
        "kind": range(max(2, *(len(matrix.kinds) for matrix in program.matrices))),
        "address": range(max(2, *(matrix.blocks for matrix in program.matrices)))})


def _scale_bits(program: Program) -> int:
    """Bits of a row's scale, see `circulant.sim.arith.weight_grid.WeightGrid.row_scales`."""
    return max(matrix.product.grid.spread for matrix in program.matrices).bit_length()


def chain_width(program: Program) -> int:
    """Bits of a word of `chain_image`: biases, route, scale."""
    biases = program.matrices[0].product.block_size * _bias_width(program)
    return biases + route_layout(program).size + _scale_bits(program)


def _bias_width(program: Program) -> int:
    """Bits of a value of a bias; 0 where sums stay in the spectral domain."""
    first = program.matrices[0].product
    return 0 if first.spectral else max(matrix.product.output.width for matrix in program.matrices)


def chain_output(program: Program) -> wiring.Signature:
    """Interface from a chain to the memories of its rows.

    Members:
        valid: a row leaves.
        completes: the row makes its block whole.
        matrix: number of the row's matrix.
        kind: number of the row's gate in its matrix.
        address: address of the row's block.
        second: the row belongs to every second step.
        data: the row's k values.
    """
    members = {name: Out(field.shape) for name, field in route_layout(program)}
    width = max(matrix.product.output.width for matrix in program.matrices)
    row = data.ArrayLayout(signed(width), program.matrices[0].product.block_size)
    return wiring.Signature(members | {"second": Out(1), "data": Out(row)})


def pipeline_latency(k: int, levels: int = LEVELS) -> int:
    """Cycles from a pass's sums to its first row: combine, round, clip; inverse FFT; round, bias."""
    return sum(_before(k, levels)) + fft_latency(k, levels, _more(levels)) + 2 - _more(levels)


def _before(k: int, levels: int) -> tuple[bool, bool, bool]:
    """Whether there is a register behind each of combine, round, clip. Where sums begin with the half of their rounding
    all three are one step, and one with the first ones of the transform, unless a register has its place there: routes
    and biases are read meanwhile."""
    if not begins_with_half(levels):
        return True, True, True
    return False, False, bool(registers(1, levels, transform_steps(k) + 1)) or not fft_latency(k, levels, 1)


def _more(levels: int) -> int:
    """Steps behind the transform without a register before them: rounding and bias where they are one, as the half is
    added with the bias; else each has a register."""
    return int(begins_with_half(levels))


def chain_image(name: str, program: Program, chain: int) -> Image:
    """Scales, routes and biases of a chain's rows, in the order in which they leave."""
    layout, words = route_layout(program), []
    width = _bias_width(program)
    biases = width * program.matrices[0].product.block_size
    for index, row in program.leaving(chain):
        matrix = program.matrices[index]
        if row < 0:
            words.append(0)
            continue
        block, kind = divmod(row, len(matrix.kinds))
        route = layout.const({
            "valid": 1, "completes": int(matrix.completes and kind == len(matrix.kinds) - 1), "matrix": index,
            "kind": kind, "address": matrix.places(program.shape).place(block)[1]})
        (bias,) = packed(matrix.bias[row : row + 1], width)
        words.append(matrix.scales[row] << biases + layout.size | Value.cast(route).value << biases | bias)
    return Image(words, chain_width(program), f"{name}_chain{chain}").coded(program.shape.protection)


class OutputPipeline(wiring.Component):
    """One row per cycle; ``latency`` cycles from ``start`` to the first row of a pass.

    Parameters:
        name: of the layer; names the memory image, see `chain_image`.
        program: the passes.
        chain: number of this chain.
        sums: layout of the sums of a row.
        config: see `Rom`.

    Members:
        start: the sums of a pass's first row are there; those of the others follow, one per cycle.
        number: with ``start``: number of the pass.
        second: with ``start``: whether the step of the pass is every second one.
        holds: with ``start``: rows whose sums go on to another command do not leave.
        sums: sums of the row at the head of the drain.
        o: rows, see `chain_output`.
        faults: of protected memories, see `circulant.hw.arith.decoder.FAULTS`.
    """

    def __init__(self, *, name: str, program: Program, chain: int, sums: data.ArrayLayout,
                 config: Config | None = None) -> None:
        self._name, self._config = name, config
        self._program = program
        self._chain = chain
        self._products = [matrix.product for matrix in program.matrices]
        first = self._products[0]
        self._width = _bias_width(program)
        self._fft = FftShape(first.block_size, max(p.product.width for p in self._products), first.twiddle_bits,
                             program.shape.levels)
        super().__init__({
            "start": In(1), **({"holds": In(1)} if program.joint_gates[0] else {}),
            "number": In(range(len(program.passes))), "second": In(1), "sums": In(sums),
            "o": Out(chain_output(program)), **watched(program.shape.protection)})

    @property
    def latency(self) -> int:
        """Cycles from ``start`` to the first row, see `pipeline_latency`."""
        return pipeline_latency(self._fft.k, self._fft.levels)

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        # The row at the head of the drain, and its matrix.
        row_valid, number, slot, second = self._slots(m)
        matrix = Signal(range(len(self._products)))
        m.d.comb += matrix.eq(per_matrix(
            [self._program.row_of(n, self._chain)[0] for n in range(len(self._program.passes))], number))

        # Combined, rounded and clipped to the product's format: the spectrum that the inverse transform takes.
        lives = Lives(m, row_valid if gates_clocks(platform) else None, name="row_lives")
        drops = [p.frac - p.product.frac for p in self._products]
        widths = [p.product.width for p in self._products]
        k, levels = self._fft.k, self._fft.levels
        keeps, inside, late = _before(k, levels), fft_latency(k, levels, _more(levels)), 1 - _more(levels)
        ready = lives.at(sum(keeps))
        at = delay(m, matrix, int(keeps[0]), name="combined_matrix")
        clips = delay(m, at, int(keeps[1]), name="whole_matrix")
        spectrum = []
        for j, number_j in enumerate(self._combined()):
            combined = when(m, number_j, number_j.shape(), kept=keeps[0], name=f"combined_{j}", enable=lives.at(0))
            if begins_with_half(levels):  # Clipped as each format asks, then chosen: that takes fewer levels.
                clipped = _chosen(list(zip(drops, widths, strict=True)), at, partial(_clipped, combined))
            else:
                fitted = _chosen(drops, at, partial(round_shift, combined))
                whole = when(m, fitted, fitted.shape(), kept=keeps[1], name=f"whole_{j}",
                             enable=lives.at(int(keeps[0])))
                clipped = _chosen(widths, clips, partial(saturate, whole))
            spectrum.append(when(m, clipped, signed(self._fft.width), kept=keeps[2], name=f"product_{j}",
                                 enable=lives.at(sum(keeps[:2]))))
        turned = self._turned(m, platform, spectrum, ready)

        # The row's route and biases, read so that they meet it behind the transform.
        there = sum(keeps) + inside
        starts = per_matrix([n * self._program.shape.slots for n in range(len(self._program.passes))], number)
        watch = Watch(m, platform, self._program.shape.protection)
        route, biases, scale = self._image(m, watch, (row_valid, starts + slot), there, late)
        watch.tell(self)
        output = Signal(self.o.data.shape(), reset_less=True)
        routed = Signal(route.shape())
        live = delay(m, row_valid & ~self._held(m), there + late, name="live", reset_less=False)
        matrix = delay(m, clips, inside + int(keeps[2]), name="matrix")
        final = delay(m, matrix, late, name="final")
        m.d.sync += [routed.eq(route), routed.valid.eq(live & route.valid), routed.completes.eq(live & route.completes)]
        m.d.comb += [
            self.o.valid.eq(routed.valid), self.o.completes.eq(routed.completes), self.o.matrix.eq(routed.matrix),
            self.o.kind.eq(routed.kind), self.o.address.eq(routed.address),
            self.o.data.eq(output), self.o.second.eq(delay(m, second, self.latency, name="second")),
        ]

        # Scaled as the row asks for, rounded to the format of y, and the bias added.
        shifts = [p.last_shift for p in self._products]
        spread = max(p.grid.spread for p in self._products)
        for j in range(self._fft.k):
            scaled = turned[j]
            if spread:
                scaled = Signal(signed(self._fft.inverse_width + spread), name=f"scaled_{j}")
                m.d.comb += scaled.eq(turned[j] << scale)
            bias = biases.word_select(j, self._width).as_signed() if self._width else None
            outputs = [p.output.width for p in self._products]
            if late:
                value = _chosen(shifts, matrix, partial(round_shift, scaled))
                rounded: Value = when(m, value, value.shape(), kept=True, name=f"rounded_{j}", enable=lives.at(there))
                limited = _chosen(outputs, final, partial(saturate, rounded if bias is None else rounded + bias))
            else:
                limited = _chosen(list(zip(shifts, outputs, strict=True)), matrix, partial(_biased, scaled, bias))
            update(m, output[j].eq(limited), lives.at(there + late))
        return m

    def _turned(self, m: Module, platform: Platform, spectrum: list[Signal], ready: Value | None) -> list[Value]:
        """Values that the inverse transform makes of a spectrum; those of a spectral product are the same, as late."""
        if self._products[0].spectral:
            late = fft_latency(self._fft.k, self._fft.levels, _more(self._fft.levels))
            return [delay(m, each, late, name=f"spectrum_{j}") for j, each in enumerate(spectrum)]
        (inverse,) = instances(m, platform, "inverse", InverseFft, 1, shape=self._fft,
                               **({"more": more} if (more := _more(self._fft.levels)) else {}))
        m.d.comb += [inverse.i.valid.eq(1 if ready is None else ready), inverse.o.ready.eq(1),
                     *(inverse.i.payload[j].eq(each) for j, each in enumerate(spectrum))]
        return [inverse.o.payload[j] for j in range(self._fft.k)]

    def _slots(self, m: Module) -> tuple[Value, Value, Value, Value]:
        """Count the rows of a pass: whether there is one, of which pass, at which slot, and of a second step."""
        slots = self._program.shape.slots
        remaining = Signal(range(slots + 1))
        held_second = Signal(reset_less=True)
        held_number = Signal.like(self.number, reset_less=True)
        row_valid = Signal()
        number = Signal.like(self.number)
        slot = Signal(range(slots + 1))
        second = Signal()
        m.d.comb += [
            row_valid.eq(self.start | (remaining != 0)),
            number.eq(Mux(self.start, self.number, held_number)),
            slot.eq(Mux(self.start, 0, slots - remaining)),
            second.eq(Mux(self.start, self.second, held_second)),
        ]
        m.d.sync += [held_number.eq(number), held_second.eq(second)]
        with m.If(row_valid):
            m.d.sync += remaining.eq(Mux(self.start, slots - 1, remaining - 1))
        return row_valid, number, slot, second

    def _held(self, m: Module) -> Value:
        """Whether the rows of this pass do not leave."""
        if not self._program.joint_gates[0]:
            return Const(0)
        holding = Signal()
        m.d.sync += holding.eq(Mux(self.start, self.holds, holding))
        return Mux(self.start, self.holds, holding)

    def _combined(self) -> list[Value]:
        """The spectrum of a row. The parts of a sum of complex products have less bits than its three sums."""
        sums = [Value.cast(self.sums[j]) for j in range(self.sums.shape().length)]
        numbers = sums[:2]
        for s1, s2, s3 in zip(sums[2::3], sums[3::3], sums[4::3], strict=True):
            numbers += [each[:len(s1) - 1].as_signed() for each in (s1 - s3, s1 + s2)]
        return numbers

    def _image(self, m: Module, watch: Watch, asked: tuple[Value, Value], there: int, late: int
               ) -> tuple[data.View, Value, Value]:
        """Route and biases of a row, ``there`` cycles and ``late`` more after its address; its scale, ``there`` cycles.

        A scale is read a cycle earlier, into a register, as a shift follows in the cycle in which it is there; and so
        is what has to be decoded. Without a scale the word is read later, not delayed.
        """
        if not _scale_bits(self._program):
            there, late = there + late, 0
        layout, width = route_layout(self._program), self._width * self._fft.k
        image = chain_image(self._name, self._program, self._chain)
        m.submodules.image = rom = Rom(**image._asdict(), config=self._config, scrubbed=watch.scrubs)
        valid, address = asked
        before = int((bool(_scale_bits(self._program)) or watch.active) and there > 1)
        m.d.comb += [rom.en.eq(1), rom.addr.eq(delay(m, address, there - 1 - before, name="address"))]
        at = delay(m, watch.read(rom, chain_width(self._program), name="image", when=watch.later(
            valid, there - before, name="counts")), before, name="read")
        word = delay(m, at, late, name="word")
        return data.View(layout, word[width:width + layout.size]), word[:width], at[width + layout.size:]


def _clipped(x: Value, form: tuple[int, int]) -> Value:
    """The upper bits of a sum that began with half of what they stand for, clipped: the bits dropped, the width."""
    s, width = form
    return saturate(x[s:].as_signed() if s > 0 else x << -s, width)


def _biased(x: Value, bias: Value | None, form: tuple[int, int]) -> Value:
    """`round_shift` and the bias in one sum, clipped: the shift, the width."""
    s, width = form
    return saturate(round_shift(x, s) if bias is None else rounded_sum(x, s, bias), width)


def _chosen(keys: Sequence[K], matrix: Value, make: Callable[[K], Value]) -> Value:
    """The value that ``make`` gives for the matrix's key; made once where all keys are equal."""
    return make(keys[0]) if len(set(keys)) == 1 else per_matrix([make(key) for key in keys], matrix)
