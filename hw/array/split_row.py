"""The products of two rows that share their lanes, and their sums: in a group of columns that has blocks of the input
and of the state, a GRU's candidate sums up both apart, as they are rounded apart.
"""
from collections.abc import Iterator

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from circulant.hw.array.mac_row import MacRow, MacRowShape, lane_products
from circulant.hw.emit.target import Platform
from circulant.hw.stream.pipeline import Lives, registers, tree, when

__all__ = ["SplitRow", "SumRow", "divides"]


def divides(columns: int, head: int) -> bool:
    """Whether the trees over the ``head`` of a row and over the rest of it, and one step more, are as deep as the tree
    over the row."""
    return 0 < head < columns and ceil_log2(max(head, columns - head)) < ceil_log2(columns)


class SplitRow(wiring.Component):
    """Sums of two rows over their columns, `tree_latency` cycles after their operands; in `SumRow` they are added up.

    Parameters:
        shape: of both rows.
        head: columns that are summed up apart from the others.
        gated: registers hold what nobody waits for.

    Members:
        x, w, phase, live: see `MacRow`.
        head: the columns at the head belong to the first row, not to the second one; `tree_latency` - 2 cycles after x.
        tail: the columns behind the head belong to the first row, not to the second one; with ``head``.
        sums: sums of each row over its columns.
    """

    def __init__(self, shape: MacRowShape, *, head: int, gated: bool = False) -> None:
        if not divides(shape.columns, head):
            raise ValueError("Both parts of a split row must fit trees of one step less than that of "
                             f"{shape.columns} columns, not {head} and {shape.columns - head} columns")
        self._shape, self._head, self._gated = shape, head, gated
        super().__init__({
            "x": In(shape.operands), "w": In(shape.weights), "phase": In(range(shape.fold)),
            "head": In(1), "tail": In(1), "sums": Out(shape.row_sums).array(2), **({"live": In(1)} if gated else {})})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        shape, steps = self._shape, ceil_log2(self._shape.columns) - 1
        firsts = []
        for flag, name in ((self.head, "head"), (self.tail, "tail")):
            first = Signal(name=f"{name}_first", attrs={"keep": 1})
            m.d.sync += first.eq(flag)
            firsts.append(first)
        lives = Lives(m, self.live if self._gated else None, name="live")
        products = lane_products(m, platform, shape, x=self.x, w=self.w, phase=self.phase, lives=lives,
                                 gated=self._gated)
        behind = lives.after(2)
        last = behind.at(registers(steps + 1, shape.levels) - 1)
        for i, terms in enumerate(products):
            parts = [tree(m, columns, name=f"{name}_{i}", levels=shape.levels, lives=behind, count=steps, more=1)
                     for columns, name in ((terms[:self._head], "head"), (terms[self._head:], "tail"))]
            for row in range(2):
                mine = [Mux(first, 0, part) if row else Mux(first, part, 0)
                        for first, part in zip(firsts, parts, strict=True)]
                m.d.comb += self.sums[row][i].eq(when(
                    m, mine[0] + mine[1], shape.row_sums.elem_shape, kept=True, name=f"sum_{row}_{i}", enable=last))
        return m


class SumRow(MacRow):
    """A row whose sums over the columns come from outside.

    Members:
        row_sums: sums over the columns, `tree_latency` cycles after their operands.
    """

    def _sources(self, shape: MacRowShape) -> dict[str, wiring.Member]:
        return {"row_sums": In(shape.row_sums)}

    def _row_sums(self, m: Module, platform: Platform) -> Iterator[Value]:
        yield from self.row_sums
