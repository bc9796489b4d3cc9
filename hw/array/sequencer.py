"""The counters over a program: a group of columns per cycle, once its data is there and the drain will be free."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Array, Const, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.array.program import Program

__all__ = ["Sequencer", "command"]


def command(program: Program, depth: int) -> data.StructLayout:
    """Which command, where the vector that it reads begins, and whether the recurrent part of it counts as zero."""
    return data.StructLayout({"command": range(max(2, program.commands)), "base": range(depth), "zero": 1})


class Sequencer(wiring.Component):
    """Block products in the order of the weight memories, without a gap between commands whose data is there.

    Parameters:
        program: the passes.
        needs: for each command and each group of columns, how many blocks of the recurrent (or to be projected) vector
            must have come before it is read.
        depth: addresses of a bank.
        most: blocks that can have come at the most.

    Members:
        go: stream of commands.
        have: for each command, the blocks that have come.
        command, zero: of the command at work.
        group, address: the group of columns of this cycle, and where the banks have it.
        weight: address of the weights.
        number: of the pass.
        valid, first, ends, done: block products are issued; they start a row, end a row, end the command.
    """

    def __init__(self, program: Program, *, needs: Sequence[Sequence[int]], depth: int, most: int) -> None:
        self._program = program
        self._needs = needs
        layout = command(program, depth)
        super().__init__(
            {
                "go": In(stream.Signature(layout)),
                "have": In(data.ArrayLayout(range(most + 1), program.commands)),
                "command": Out(layout.members["command"]),
                "zero": Out(1),
                "group": Out(range(max(2, *(p.groups + 1 for p in program.passes)))),
                "address": Out(range(depth)),
                "weight": Out(range(max(2, program.cycles))),
                "number": Out(range(max(2, len(program.passes)))),
                "valid": Out(1),
                "first": Out(1),
                "ends": Out(1),
                "done": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        program, passes = self._program, self._program.passes
        active, ready, base = Signal(), Signal(), Signal.like(self.address)
        draining = Signal(range(max(2, program.shape.slots)))
        last, final = Signal.like(self.group), Signal()
        finals = [n + 1 == len(passes) or passes[n + 1].command != p.command for n, p in enumerate(passes)]
        m.d.comb += [
            last.eq(self._of_pass([p.groups - 1 for p in passes])),
            final.eq(self._of_pass([int(f) for f in finals])),
            self.first.eq(self.group == 0),
            # A row may only begin when its sums will find the drain empty.
            self.valid.eq(active & ready & (draining <= (last - self.group))),
            self.ends.eq(self.valid & (self.group == last)),
            self.done.eq(self.ends & final),
            self.go.ready.eq(~active | self.done),
            self.address.eq(base + self.group),
        ]
        with m.Switch(self.command):
            for number, needs in enumerate(self._needs):
                with m.Case(number):
                    need = Array([Const(n) for n in needs])[self.group] if len(set(needs)) > 1 else Const(needs[0])
                    m.d.comb += ready.eq(self.zero | (self.have[number] >= need))
        with m.If(draining != 0):
            m.d.sync += draining.eq(draining - 1)
        with m.If(self.valid):
            m.d.sync += [self.weight.eq(self.weight + 1), self.group.eq(self.group + 1)]
        with m.If(self.ends):
            m.d.sync += [self.group.eq(0), self.number.eq(self.number + 1), draining.eq(program.shape.slots - 1)]
        with m.If(self.done):
            m.d.sync += active.eq(0)
        with m.If(self.go.valid & self.go.ready):
            chosen = self.go.payload
            m.d.sync += [
                active.eq(1),
                self.command.eq(chosen.command),
                base.eq(chosen.base),
                self.zero.eq(chosen.zero),
                self.group.eq(0),
            ]
            for number in range(program.commands):
                with m.If(chosen.command == number):
                    m.d.sync += [
                        self.number.eq(program.first_pass(number)),
                        self.weight.eq(program.first_cycle(number)),
                    ]
        return m

    def _of_pass(self, values: list[int]) -> Value:
        return Const(values[0]) if len(set(values)) == 1 else Array([Const(value) for value in values])[self.number]
