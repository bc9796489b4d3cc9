"""Forms of gates: the cell that does what another one does with some of its pins inverted."""
from collections import defaultdict
from collections.abc import Iterable
from itertools import permutations

from circulant.boards.asic.cells.functions import parsed
from circulant.boards.asic.cells.library import Cell, Library

__all__ = ["WIDEST", "Gates", "gates", "variant"]

WIDEST = 4
"""Inputs of the largest gate whose other forms are looked for."""

Gates = dict[int, list[tuple[Cell, int]]]
"""Gates by their number of inputs, the smallest first, with their truth tables as numbers."""


def gates(library: Library) -> Gates:
    """The gates of a library that tools may use."""
    found: Gates = defaultdict(list)
    for cell in sorted(library.cells.values(), key=lambda each: each.area):
        if len(cell.outputs) == 1 and not cell.sequential and not cell.gating and not cell.dont_use and (
                1 < len(cell.inputs) <= WIDEST):
            found[len(cell.inputs)].append((cell, _table(cell, cell.inputs, frozenset())))
    return found


def variant(cell: Cell, pins: frozenset[str], inverted: bool, among: Gates
             ) -> tuple[Cell, dict[str, str]] | None:
    """The smallest gate that drives no less, and does the same with inverted pins or output; with its name of each
    pin."""
    count = len(cell.inputs)
    wanted = {_table(cell, order, pins) ^ (((1 << (1 << count)) - 1) if inverted else 0): order
              for order in permutations(cell.inputs)}
    able = cell.pins[cell.outputs[0]].most
    for other, table in among[count]:
        if table in wanted and other.pins[other.outputs[0]].most >= 0.9 * able:
            names = dict(zip(wanted[table], other.inputs, strict=True))
            return other, names | {cell.outputs[0]: other.outputs[0]}
    return None


def _table(cell: Cell, order: Iterable[str], pins: frozenset[str]) -> int:
    """The truth table of a gate as a number, for an order of its pins, of which some are inverted."""
    function = parsed(cell.pins[cell.outputs[0]].function)
    values, order = function.table(), list(order)
    place = {pin: order.index(pin) for pin in function.pins}
    found = 0
    for n in range(1 << len(order)):
        at = sum(((n >> place[pin] & 1) ^ (pin in pins)) << k for k, pin in enumerate(function.pins))
        found |= int(values[at]) << n
    return found
