"""Sizing by slack: cells on late paths become stronger where that wins more than it costs the cell before them.

A greedy method after TILOS (Fishburn and Dunlop, 1985). OpenSTA says after each round what was won; what is estimated
here only chooses the cells.
"""
from collections.abc import Callable
from dataclasses import dataclass

from circulant.boards.asic.buffers import forms
from circulant.boards.asic.cells.library import Cell, Library
from circulant.boards.asic.netlist import Netlist
from circulant.boards.asic.timing.analysis import Analysis, Late, Timing

__all__ = ["ENDS", "PATIENCE", "ROUNDS", "Round", "sized"]

ROUNDS = 60
"""Rounds at the most."""

PATIENCE = 6
"""Rounds without a better clock after which it counts as missed."""

ENDS = 400
"""Late ends of paths that are looked at in a round."""

MOVES = 3
"""Cells of a path that are exchanged in a round."""

DRIVEN = 0.7
"""Part of a cell's delay that goes with its load over its drive, about; the rest is its own."""

Round = Callable[[int, Timing], None]
"""Told the number of each round and what it reached."""


@dataclass(frozen=True)
class _Move:
    """A stronger form of an instance, with the delay in ns that it wins, estimated, for each µm² more."""

    name: str
    cell: str
    worth: float


def sized(netlist: Netlist, library: Library, analysis: Analysis, told: Round = lambda number, timing: None) -> Timing:
    """Exchange cells until the clock is met, or nothing more is won; the netlist ends as the best round left it."""
    chooser = _Chooser(netlist, library)
    reached = best = analysis.timing(ENDS)
    cells = {name: instance.cell for name, instance in netlist.instances.items()}
    kept: dict[str, str] = {}
    since = 0
    for number in range(1, ROUNDS + 1):
        told(number, reached)
        if reached.slack >= 0 or since == PATIENCE:
            break
        moves = chooser.moves(reached.late)
        if not moves:
            break
        for name, cell in moves.items():
            netlist.instances[name].cell = cell
        analysis.resize(moves)
        kept |= moves
        reached = analysis.timing(ENDS, hold=False)
        if (reached.slack, -reached.missing) > (best.slack, -best.missing):
            best, since = reached, 0
            cells |= kept
            kept = {}
        else:
            since += 1
    if kept:  # Exchanges since the best round.
        back = {name: cells[name] for name in kept}
        for name, cell in back.items():
            netlist.instances[name].cell = cell
        analysis.resize(back)
    return analysis.timing(ENDS)


class _Chooser:
    """Chooses exchanges; each form of an instance is tried once."""

    def __init__(self, netlist: Netlist, library: Library) -> None:
        self._netlist, self._library = netlist, library
        self._forms: dict[str, list[Cell]] = {}
        self._tried: set[tuple[str, str]] = set()

    def moves(self, late: tuple[Late, ...]) -> dict[str, str]:
        """For the late paths, the exchanges that are worth most on each."""
        found: dict[str, str] = {}
        for path in late:
            if sum(stage.name in found for stage in path.stages) >= MOVES:
                continue
            choices = sorted(self._choices(path), key=lambda move: move.worth, reverse=True)
            for move in choices[:MOVES]:
                found.setdefault(move.name, move.cell)
        self._tried |= set(found.items())
        return found

    def _choices(self, path: Late) -> list[_Move]:
        made = []
        for before, stage in zip((None, *path.stages), path.stages, strict=False):
            cell = self._cell(stage.name)
            if cell is None or cell.gating:
                continue
            for better in self._better(cell)[:2]:
                if (stage.name, better.name) in self._tried:
                    continue
                won = DRIVEN * stage.delay * (1 - _drive(cell) / _drive(better))
                if before is not None and before.load > 0:
                    heavier = max((better.pins[pin].capacitance - cell.pins[pin].capacitance for pin in cell.inputs),
                                  default=0.0) / self._farads
                    won -= DRIVEN * before.delay * heavier / before.load
                if won > 0.002 * stage.delay:
                    made.append(_Move(stage.name, better.name, won / max(better.area - cell.area, 1e-3)))
        return made

    @property
    def _farads(self) -> float:
        """fF of the unit that OpenSTA reports loads in."""
        return self._library.femtofarads

    def _cell(self, name: str) -> Cell | None:
        instance = self._netlist.instances.get(name)
        return self._library.cells.get(instance.cell) if instance else None

    def _better(self, cell: Cell) -> list[Cell]:
        """The stronger forms of a cell, the weakest first."""
        if cell.name not in self._forms:
            self._forms[cell.name] = [each for each in forms(self._library, cell) if _drive(each) > _drive(cell)]
        return self._forms[cell.name]


def _drive(cell: Cell) -> float:
    """The most that the first output may drive, in fF."""
    return max(cell.pins[cell.outputs[0]].most, 1.0)
