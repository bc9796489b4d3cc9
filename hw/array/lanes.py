"""The array: R rows of C lanes with their weight memories, and the chains behind them.

spectra of C columns ─► operands ─┬─► row 0   ─► sums ─► chain 0 ◄─ sums ◄─ row I   ◄─ …
(from the banks)                  ├─► row 1   ─► sums ─► chain 1 ◄─ sums ◄─ row I+1 ◄─ …
                                  └─► …
"""
from collections.abc import Sequence
from typing import NamedTuple

from amaranth.hdl import Array, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.decoder import Watch, watched
from circulant.hw.array.issue import issues_of, spectra_latency
from circulant.hw.array.mac_row import (
    MacRow,
    MacRowShape,
    begins_with_half,
    data_operands,
    phases,
    row_latency,
    tree_latency,
)
from circulant.hw.array.output_pipeline import OutputPipeline, chain_image, chain_output, pipeline_latency
from circulant.hw.array.program import ArrayShape, Matrix, Program
from circulant.hw.array.row_pair import RowPair, pair_forms
from circulant.hw.array.split_row import SplitRow, SumRow
from circulant.hw.emit.image import Image
from circulant.hw.emit.target import Platform, Rom, gates_clocks, instances, packed
from circulant.hw.reload.config import Config
from circulant.hw.stream.pipeline import Lives, delay, per_matrix, steps, update, when

__all__ = ["LaneArray", "array_images", "array_latency", "row_shape", "rows_for", "weight_image"]


APART = 4
"""Rows of a chain at the most that keep their sums until it fetches them, by a look-up table of six inputs for a bit;
those of more rows are shifted from row to row, in registers beside the sums."""


def row_shape(program: Program) -> MacRowShape:
    """The rows of the array that a program asks for."""
    return rows_for(program.matrices, program.shape, program.slots)


def rows_for(matrices: Sequence[Matrix], shape: ArrayShape, slots: int) -> MacRowShape:
    """The rows of an array that multiplies with matrices."""
    products = [part.product for matrix in matrices for part in matrix.parts]
    return MacRowShape(
        k=products[0].block_size,
        columns=shape.columns,
        data_width=max(product.spectrum.width for product in products),
        weight_width=max(product.weight.width for product in products),
        terms=max(matrix.columns for matrix in matrices),
        slots=slots,
        fold=shape.fold,
        levels=shape.levels,
        multiplier=products[0].multiplier,
    )


def array_latency(k: int, shape: ArrayShape) -> int:
    """Cycles from a pass's last group of columns to its first row: spectra, operands where the levels of logic allow
    one step between two registers, row, drain, chain."""
    return _operands(shape.levels) + row_latency(shape.columns, shape.levels) + pipeline_latency(k, shape.levels)


def _operands(levels: int) -> int:
    """Cycles from an issue to its operands."""
    return spectra_latency(levels) + (1 if steps(levels) == 1 else 0)


def weight_image(name: str, program: Program, row: int, column: int) -> Image:
    """The spectra that a lane multiplies with, a block for each issue."""
    shape = row_shape(program)
    return Image(packed(program.weights(row, column), shape.weight_width), shape.k * shape.weight_width,
                 f"{name}_weights_{row}_{column}").coded(program.shape.protection)


def array_images(name: str, program: Program) -> list[Image]:
    """The memories of an array with given contents: weights, and those of `chain_image`."""
    shape = program.shape
    return [*(weight_image(name, program, r, c) for r in shape.lane_rows for c in range(shape.columns)),
            *(chain_image(name, program, c) for c in range(shape.chains))]


class _Rows(NamedTuple):
    """The rows of an array.

    Parameters:
        all: the rows, in their order.
        doubled: units that multiply for two rows.
        halves: for rows without lanes of their own, the unit that multiplies and which of its rows it is.
    """

    all: list[MacRow]
    doubled: list[RowPair | SplitRow]
    halves: dict[int, tuple[RowPair | SplitRow, int]]


class LaneArray(wiring.Component):
    """Block products with all columns of a group in all rows, each cycle; ``latency`` cycles later a pass's rows come.

    Parameters:
        name: of the layer; names the memory images.
        program: the passes.
        config: see `Rom`.

    Members:
        issue: the group of columns that is read in this cycle, see `circulant.hw.array.issue.issue_signature`.
        second: the step of the group is every second one.
        spectra: spectra of the group that was issued `spectra_latency` cycles before.
        o: rows of each chain, see `chain_output`.
        faults: of protected memories, see `circulant.hw.arith.decoder.FAULTS`.
    """

    def __init__(self, *, name: str, program: Program, config: Config | None = None) -> None:
        self._name, self._config = name, config
        self._program = program
        shape = program.shape
        self.row = row_shape(program)
        self._alone = self.row.late and shape.slots == 1
        self._apart = self._alone or (self.row.late and shape.fold == 1 and shape.slots <= APART)
        self._chains = [
            OutputPipeline(name=name, program=program, chain=c, sums=self.row.sums, config=config)
            for c in range(shape.chains)
        ]
        spectrum = data.ArrayLayout(signed(self.row.data_width), self.row.k)
        super().__init__(
            {
                "issue": In(issues_of(program)),
                "second": In(1),
                "spectra": In(data.ArrayLayout(spectrum, shape.columns)),
                "o": Out(chain_output(program)).array(shape.chains),
                **watched(shape.protection),
            }
        )

    @property
    def latency(self) -> int:
        """Cycles from the last group of columns of a pass to its first row."""
        return array_latency(self.row.k, self._program.shape)

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        operands, phase = self._operands(m)
        rows = self._rows(m, platform)
        lives = Lives(m, self.issue.valid if gates_clocks(platform) else None, name="live")
        load = delay(m, self.issue.ends, self._summed, name="load", reset_less=False)
        moves = self._moves(m, load) if gates_clocks(platform) else None
        if moves is not None:
            self._gate(m, rows, lives, moves)
        self._multiply(m, rows, operands, phase)
        self._accumulate(m, rows.all, load, phase)
        watch = Watch(m, platform, self._program.shape.protection)
        self._weights(m, rows, lives, watch)
        self._drain(m, rows.all, load, moves)
        watch.tell(self, *self._chains)
        return m

    def _operands(self, m: Module) -> tuple[Signal, Value]:
        """The data side of the products, one register for all rows where it is one, and the phase that it is at."""
        row = self.row
        operands = Signal(row.operands, reset_less=row.late)
        domain = m.d.sync if row.late else m.d.comb
        phase = delay(m, self.issue.phase, spectra_latency(row.levels), name="phase")
        for c in range(self._program.shape.columns):
            spectrum = [self.spectra[c][j] for j in range(row.k)]
            chosen = phases(data_operands(spectrum), row, phase)
            domain += [operands[c][j].eq(operand) for j, operand in enumerate(chosen)]
        return operands, phase

    @property
    def _summed(self) -> int:
        """Cycles from an issue to the cycle before the sum of its products."""
        return _operands(self.row.levels) + tree_latency(self.row.columns, self.row.levels) - 1

    def _rows(self, m: Module, platform: Platform) -> _Rows:
        """The rows, and the units that multiply for two of them."""
        program, row, shape = self._program, self.row, self._program.shape
        more = {"gated": True} if gates_clocks(platform) else {}
        forms = pair_forms(program, row, loadable=self._config is not None)
        couples = shape.couples if forms else []
        shared = shape.shared
        paired = [r for couple in couples for r in couple]
        single = [r for r in range(shape.rows) if r not in (*paired, *shared)]
        summing = more | ({"apart": True} if self._apart else {})
        pairs = instances(m, platform, "pair", RowPair, len(couples), shape=row, forms=forms, **more) if forms else []
        splits = instances(m, platform, "split", SplitRow, len(shared) // 2, shape=row, head=program.parted_at,
                           **more) if shared else []
        made = instances(m, platform, "row", MacRow, len(paired), shape=row, **summing, given=True) if forms else []
        made += instances(m, platform, "row" if not forms else "last", MacRow, len(single), shape=row,
                          **summing)
        made += instances(m, platform, "sums", SumRow, len(shared), shape=row, **summing) if shared else []
        at = dict(zip([*paired, *single, *shared], made, strict=True))
        doubled: list[RowPair | SplitRow] = [*pairs, *splits]
        return _Rows([at[r] for r in range(shape.rows)], doubled,
                     {r: (doubled[n // 2], n % 2) for n, r in enumerate([*paired, *shared])})

    def _gate(self, m: Module, rows: _Rows, lives: Lives, moves: Value) -> None:
        """Tell all units when their registers count."""
        live = lives.at(_operands(self.row.levels))
        for unit in rows.doubled:
            m.d.comb += unit.live.eq(live)
        for lanes in rows.all:
            m.d.comb += [lanes.live.eq(live), *([] if self._apart else [lanes.moves.eq(moves)])]

    def _multiply(self, m: Module, rows: _Rows, operands: Signal, phase: Value) -> None:
        """Operands to the units that multiply, and the products, or their sums, of two rows to these."""
        for unit in rows.doubled:
            m.d.comb += [unit.x.eq(operands), unit.phase.eq(phase)]
            if "head" in unit.signature.members:
                m.d.comb += [getattr(unit, name).eq(delay(m, getattr(self.issue, name), self._summed - 1, name=name))
                             for name in ("head", "tail")]
        for r, lanes in enumerate(rows.all):
            if r not in rows.halves:
                m.d.comb += [lanes.x.eq(operands), lanes.phase.eq(phase)]
                continue
            unit, one = rows.halves[r]
            m.d.comb += (lanes.row_sums.eq(unit.sums[one]) if r in self._program.shape.shared else
                         lanes.products.eq(unit.products[one]))

    def _accumulate(self, m: Module, rows: list[MacRow], load: Value, phase: Value) -> None:
        """The issue to the accumulators of all rows, and the sums of each to the row before it in its chain. What is
        added up behind a reset is replaced by the first product of the next sum, and no row of it leaves."""
        issue, summed = self.issue, self._summed
        joint, gates = self._program.joint_gates
        part = delay(m, phase, summed - spectra_latency(self.row.levels), name="part")
        add, slot, first = (delay(m, value, summed, name=name) for name, value in (
            ("add", issue.valid), ("slot", issue.slot), ("first", issue.first)))
        # Rows whose sums go on from one command to another do not start anew.
        going = first & ~delay(m, issue.goes_on, summed, name="goes_on") if joint else first
        chosen = delay(m, issue.number, summed + 1, name="begun")
        for r, lanes in enumerate(rows):
            if begins_with_half(self.row.levels):
                m.d.comb += lanes.half.eq(self._half(r % self._program.shape.chains, chosen))
            m.d.comb += [lanes.add.eq(add), lanes.slot.eq(slot), lanes.first.eq(going if r % gates < joint else first),
                         lanes.load.eq(load), lanes.part.eq(part)]
            if not self._apart and r + self._program.shape.chains < len(rows):
                m.d.comb += lanes.chain.eq(rows[r + self._program.shape.chains].sums)

    def _half(self, chain: int, number: Value) -> Value:
        """Half of what the last bit of a sum stands for when a chain rounds it, in the pass of a number."""
        program = self._program
        products = [program.matrices[program.row_of(n, chain)[0]].product for n in range(len(program.passes))]
        return per_matrix([1 << p.frac - p.product.frac >> 1 if p.frac > p.product.frac else 0 for p in products],
                          number)

    def _weights(self, m: Module, rows: _Rows, lives: Lives, watch: Watch) -> None:
        """The memory of each lane, and a register behind it where there is one behind that of the spectra."""
        issue, shape = self.issue, self._program.shape
        kept = spectra_latency(shape.levels) > 1
        enable, bits = lives.at(0), self.row.k * self.row.weight_width
        counts = watch.later(issue.valid, 1, name="counts")
        for r in shape.lane_rows:
            unit, one = rows.halves.get(r, (rows.all[r], 0))
            taken = unit.w[one] if r in rows.halves and r not in shape.shared else unit.w
            for c in range(shape.columns):
                image = weight_image(self._name, self._program, r, c)
                m.submodules[f"weights_{r}_{c}"] = rom = Rom(**image._asdict(), config=self._config,
                                                             scrubbed=watch.scrubs)
                word = watch.read(rom, bits, when=counts, name=f"weights_{r}_{c}")
                weights = when(m, word, bits, kept=kept, name=f"weights_{r}_{c}_1", enable=lives.at(1))
                m.d.comb += [rom.en.eq(1 if enable is None else enable), rom.addr.eq(issue.weight),
                             Value.cast(taken[c]).eq(weights)]

    def _drain(self, m: Module, rows: list[MacRow], load: Value, moves: Value | None) -> None:
        """Sums of the first rows to the chains, and what leaves these: no row whose sums go on. Where each chain has
        one row, the register between both is behind the chain instead, where numbers are narrower."""
        joint, gates = self._program.joint_gates
        drained = _operands(self.row.levels) + row_latency(self.row.columns, self.row.levels) - self._alone
        start = delay(m, load, drained - self._summed, name="start", reset_less=False)
        number, second = (delay(m, value, drained, name=name) for name, value in (
            ("number", self.issue.number), ("second", self.second)))
        held = delay(m, self.issue.holds, drained, name="holds") if joint else None
        for c, chain in enumerate(self._chains):
            m.submodules[f"chain_{c}"] = chain
            m.d.comb += [chain.start.eq(start), chain.number.eq(number), chain.second.eq(second),
                         chain.sums.eq(self._head(m, rows, c, load, moves))]
            if held is not None:
                m.d.comb += chain.holds.eq(held if c % gates < joint else 0)
            for name in chain.o.signature.members:
                value = Value.cast(getattr(chain.o, name))
                if self._alone:
                    value = delay(m, value, 1, name=f"{name}_{c}", reset_less=name == "data")
                m.d.comb += Value.cast(getattr(self.o[c], name)).eq(value)

    def _moves(self, m: Module, load: Value) -> Value:
        """Whether drains are loaded in this cycle, or shifted for the rows behind them: a cycle or two after what the
        rows are told, and as many cycles as a chain has rows."""
        loads = delay(m, load, 2 if self.row.late else 1, name="loads", reset_less=False)
        moves = loads
        for n in range(1, self._program.shape.slots):
            loads = delay(m, loads, 1, name=f"shifts_{n}", reset_less=False)
            moves = moves | loads
        return moves

    def _head(self, m: Module, rows: list[MacRow], chain: int, load: Value, moves: Value | None) -> Value:
        """The sums at the head of a chain: those of its first row, which the others' follow, or each row's in turn."""
        mine = rows[chain::self._program.shape.chains]
        if not self._apart or self._alone:
            return mine[0].sums
        turn = Signal(range(self._program.shape.slots), name=f"turn_{chain}", attrs={"keep": 1})
        head = Signal(self.row.sums, name=f"head_{chain}", reset_less=True)
        begins = delay(m, load, 1, name=f"begins_{chain}", reset_less=False)
        m.d.sync += turn.eq(Mux(begins, 0, turn + 1))
        update(m, Value.cast(head).eq(Array([Value.cast(row.sums) for row in mine])[turn]), moves)
        return Value.cast(head)
