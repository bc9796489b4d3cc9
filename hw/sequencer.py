"""The order of an engine: over the groups of rows of a matrix, and in each over the columns."""
from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.pipeline import per_matrix

__all__ = ["Sequencer", "command", "groups"]


def groups(rows: int, lanes: int) -> int:
    """Groups of lanes that compute ``rows`` blocks of rows, the last one perhaps in part."""
    return -(-rows // lanes)


def command(matrices: int) -> data.StructLayout:
    """Which matrix to multiply, and whether with zero instead of its vector."""
    return data.StructLayout({"matrix": range(max(2, matrices)), "zero": 1})


class Sequencer(wiring.Component):
    """One block product per lane and cycle, in the order of the weight memories, without a gap between two commands.

    Parameters:
        shapes: rows and columns of each matrix, in blocks.
        lanes: rows of a group.

    Members:
        go: stream of commands.
        matrix, zero: of the command at work.
        column: of the block products of this cycle.
        address: of their weights.
        first_group, first: they belong to the first group of the matrix; they start a row.
        ends_row, ends: they complete a row; they complete the matrix.
    """

    def __init__(self, *, shapes: Sequence[tuple[int, int]], lanes: int) -> None:
        self._shapes = list(shapes)
        self._lanes = lanes
        self._sizes = [groups(rows, lanes) * columns for rows, columns in shapes]
        layout = command(len(self._shapes))
        super().__init__({
            "go": In(stream.Signature(layout)),
            "matrix": Out(layout.members["matrix"]), "zero": Out(1),
            "column": Out(range(max(2, *(columns for _, columns in shapes)))),
            "address": Out(range(max(2, sum(self._sizes)))),
            "first_group": Out(1), "first": Out(1), "ends_row": Out(1), "ends": Out(1),
        })

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        group_counts = [groups(rows, self._lanes) for rows, _ in self._shapes]
        starts = [sum(self._sizes[:n]) for n in range(len(self._sizes))]
        active, valid = Signal(), Signal()
        group = Signal(range(max(2, *group_counts)))
        draining = Signal(range(max(2, self._lanes)))
        last_column, last_group = Signal.like(self.column), Signal.like(group)
        m.d.comb += [
            last_column.eq(per_matrix([columns - 1 for _, columns in self._shapes], self.matrix)),
            last_group.eq(per_matrix([count - 1 for count in group_counts], self.matrix)),
            self.first.eq(self.column == 0), self.first_group.eq(group == 0),
            # A group waits before its first product, which may be repeated, until its sums will find the drain free.
            valid.eq(active & ~(self.first & (draining > last_column))),
            self.ends_row.eq(valid & (self.column == last_column)),
            self.ends.eq(self.ends_row & (group == last_group)),
            self.go.ready.eq(~active | self.ends),
        ]
        with m.If(draining != 0):
            m.d.sync += draining.eq(draining - 1)
        with m.If(valid):
            m.d.sync += [self.address.eq(self.address + 1), self.column.eq(self.column + 1)]
        with m.If(self.ends_row):
            m.d.sync += [self.column.eq(0), group.eq(group + 1), draining.eq(self._lanes - 1)]
        with m.If(self.ends):
            m.d.sync += active.eq(0)
        with m.If(self.go.valid & self.go.ready):
            chosen = self.go.payload
            m.d.sync += [
                active.eq(1), self.matrix.eq(chosen.matrix), self.zero.eq(chosen.zero), self.column.eq(0), group.eq(0),
                self.address.eq(per_matrix(starts, chosen.matrix)),
            ]
        return m
