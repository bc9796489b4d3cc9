"""Phase II: bit widths and multipliers of the models that phase I kept (E-RNN, HPCA 2019, section VII).

All combinations are evaluated by the golden model on held-out samples and by the exact cost model; the trainings are
those of phase I.
"""
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from circulant.boards.device import device
from circulant.experiment import Experiment
from circulant.explore.causes import ended, hopeless, reasons
from circulant.explore.models import Models, points_lost
from circulant.sim.refusal import Refusal
from circulant.sweep.goal import FIGURES, loss
from circulant.sweep.pareto import front
from circulant.sweep.point import Point, plain
from circulant.sweep.rows import Row
from circulant.sweep.run import Evaluate, run
from circulant.sweep.space import Axis, Space
from circulant.sweep.work import OVER

__all__ = ["UNIFORM", "WEIGHTS", "Designs", "Limits", "phase_two", "widened"]

WEIGHTS = (4, 5, 6, 8, 10, 12)
ACTIVATIONS = (8, 10, 12, 14, 16)
SHARES = (2, 4, 8)
"""Besides all multipliers of the device, one of so many."""

UNIFORM = (8, 12, 16)
"""Block size, bits of weights and bits of activations of the usual first design, which others are compared with."""

COSTS = ("cycles_per_step", "multipliers", "weight_memory_bits")
"""Costs of a design, the most important first."""

RUNNERS_UP = 3
"""Other designs that get a run folder."""

TRIES = 6
"""Designs that are tried, at the most, to find one that can be generated and does not crowd the device."""


@dataclass(frozen=True)
class Limits:
    """The bounds of a design.

    Parameters:
        lost: points of the metric that it may lose against the dense baseline.
        cycles: from step to step, at the most.
        memory_bits: of all memories, at the most.
    """

    lost: float
    cycles: float = math.inf
    memory_bits: float = math.inf

    def broken(self, row: Row, models: Models) -> list[str]:
        """The bounds that a row breaks, in words."""
        lost = points_lost(row["quantized"], models.dense, higher_is_better=models.higher_is_better)
        return [words for words, over in (
            (f"loses {lost:.2f} points, and {self.lost:g} are allowed", lost > self.lost),
            (f"takes {row['cycles_per_step']:,g} cycles, and {self.cycles:,.0f} are allowed",
             row["cycles_per_step"] > self.cycles),
            (f"has {row.get('memory_bits', 0):,} memory bits, and {self.memory_bits:,.0f} are allowed",
             row.get("memory_bits", 0) > self.memory_bits)) if over]


@dataclass(frozen=True)
class Designs:
    """The outcome of phase II.

    Parameters:
        rows: of all designs, each with ``broken``, the bounds that it breaks.
        chosen: index of the design that is proposed.
        runners_up: indices of others that nothing beats, cheapest first.
        uniform: index of the uniform design; None where its model was not trained or has no design.
        points: of the rows.
        failed: reasons of the designs that could not be generated.
    """

    rows: tuple[Row, ...]
    chosen: int
    runners_up: tuple[int, ...]
    uniform: int | None
    points: tuple[Point, ...]
    failed: str = ""

    @property
    def named(self) -> dict[str, int]:
        """Indices of the designs that are shown apart, and the names of their folders: the chosen one, its first
        runners-up, and the uniform one, which has no folder."""
        found = {"chosen": self.chosen} | {f"runner-up {n}": at for n, at in enumerate(self.runners_up[:RUNNERS_UP], 1)}
        return found if self.uniform is None else found | {"uniform": self.uniform}


def phase_two(models: Models, limits: Limits, *, deadline: float = math.inf, share: float = math.inf,
              evaluate: Evaluate = run) -> Designs:
    """The best design of the models that keep the accuracy.

    All designs within the limits are accurate enough. Those whose cycles, multipliers and weight bits are at most those
    of the uniform design come first; of these the one with the least cycles, then multipliers, weight bits and error.
    It is generated, and where that fails, or its logic, as it was counted there, does not fit the device, the next one
    is taken, of up to `TRIES`.

    Parameters:
        deadline: of `time.monotonic`, after which no design is evaluated or generated.
        share: likewise, after which none is evaluated, if it is earlier.

    Raises:
        Refusal: when no design is within the limits, with the nearest one; when there is no time for any.
        Refusal, ToolError: when none of those that are tried can be generated.
    """
    points = list(_points(models))
    rows = [row if row["reason"] else row | {"broken": limits.broken(row, models)}
            for row in evaluate(points, deadline=min(deadline, share))]
    legal = [at for at, row in enumerate(rows) if not row["reason"] and not row["broken"]]
    if not legal:
        raise Refusal(_late(rows) or _none(rows))
    uniform = next((at for at, point in enumerate(points) if not rows[at]["reason"] and _is_uniform(point)), None)
    better = [at for at in legal if uniform is not None and _no_worse(rows[at], rows[uniform])]
    distinct = list({_figures(rows[at]): at for at in reversed(legal)}.values())  # Of equal ones that of fewest bits.
    best = [distinct[at] for at in front([_figures(rows[at]) for at in distinct])]
    ranked = sorted(dict.fromkeys((*better, *best)), key=lambda at: (at not in better, _figures(rows[at])))
    tried: dict[int, Row] = {}
    for at in ranked[:TRIES]:
        tried[at], = evaluate([points[at]], measure="verilog", deadline=deadline)
        if hopeless([*tried.values()]) or not (tried[at]["reason"] or _crowded(tried[at], points[at])):
            break
    made = [at for at in tried if not tried[at]["reason"]]
    why = reasons([*tried.values()])
    if not made:
        raise ended(f"Some design must be generated, but the best {len(tried)} of {len(ranked)} cannot: {why}",
                    [*tried.values()])
    chosen = next((at for at in made if not _crowded(tried[at], points[at])), made[0])
    others = sorted((each for each in best if each != chosen and (each not in tried or each in made)),
                    key=lambda at: _costs(rows[at]))
    return Designs(tuple(rows), chosen, tuple(others), uniform, tuple(points), failed=why)


def _crowded(row: Row, point: Point) -> bool:
    """Whether the logic of a generated design, an estimate, is more than the device has."""
    held = device(point.experiment.board.device)
    return row.get("luts", 0) > held.luts or row.get("flip_flops", 0) > held.flip_flops


def _points(models: Models) -> Iterator[Point]:
    """All combinations for the chosen model, and all bits of weights for the other models with its layers: that shows
    accuracy by block size and width, and has the uniform design."""
    chosen, given = models.chosen, models.chosen.hardware.multipliers
    most = given or device(chosen.board.device).dsps
    budgets = [given, *(max(1, most // share) for share in SHARES)]
    yield from widened(chosen, WEIGHTS[::-1], ACTIVATIONS, budgets)  # Where the time ends, accurate ones are there.
    for each in (*models.trained, *models.left):
        if each is not chosen and each.model == chosen.model:
            yield from widened(each, WEIGHTS)


def widened(experiment: Experiment, weights: Sequence[int], activations: Sequence[int] = UNIFORM[2:],
            multipliers: Sequence[int] = (), label: str = "") -> Iterator[Point]:
    """An experiment with all combinations of widths, and of budgets if they are given."""
    axes = ("weight_bits", weights), ("activation_bits", activations), ("multipliers", multipliers)
    return Space(label or f"{experiment.name}, k = {plain(experiment.compression.block_size)}", experiment, tuple(
        Axis(name, "", tuple(values)) for name, values in axes if values)).points


def _is_uniform(point: Point) -> bool:
    """Membership of the usual first design: its block size and bit widths."""
    experiment = point.experiment
    bits = experiment.quantization
    return (experiment.compression.block_size, bits.weight_bits, bits.activation_bits) == UNIFORM


def _costs(row: Row) -> tuple[float, ...]:
    return tuple(FIGURES[name].cost(row) for name in COSTS)


def _figures(row: Row) -> tuple[float, ...]:
    return *_costs(row), loss(row)


def _no_worse(row: Row, other: Row) -> bool:
    return all(mine <= its for mine, its in zip(_costs(row), _costs(other), strict=True))


def _late(rows: Sequence[Row]) -> str:
    """The refusal where there was no time for all designs; empty where there was."""
    over = sum(row["reason"].startswith(OVER) for row in rows)
    return (f"--hours must be enough for a design that keeps all limits, but {OVER} before {over} of {len(rows)} were "
            "evaluated; the same command goes on with them" if over else "")


def _none(rows: Sequence[Row]) -> str:
    """Why no design is within the limits: the one that breaks the fewest, or why there is none at all."""
    made = [row for row in rows if not row["reason"]]
    if not made:
        return f"Some design must fit, but none of {len(rows)} does: {reasons(rows)}"
    nearest = min(made, key=lambda row: (len(row["broken"]), _figures(row)[::-1]))
    return (f"Some design must keep all limits, but none of {len(made)} does; the nearest one, with "
            f"{nearest['weight_bits']} bits of weights, {nearest['activation_bits']} of activations and "
            f"{nearest['multipliers']:,} multipliers, {' and '.join(nearest['broken'])}; relax one of these limits")
