"""Phase I: few trainings, each decided by those before it (E-RNN, HPCA 2019, section VI-B).

1. A block size to start with: the smallest one that fits, or 8 where smaller ones fit, too.
2. It is doubled while the accuracy holds; where the first one loses too much, matrices outside the recurrent layers
   become dense, and where that does not do, it is halved until the accuracy holds.
3. Matrices outside the recurrent layers take twice that block size, if the accuracy holds.
4. A GRU takes the place of an LSTM, if the accuracy holds.
5. Where widths are chosen, too: twice the units in larger blocks, at no more multiplications, while that is more
   accurate; else half of them in smaller blocks. This rule is not E-RNN's.
"""
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from circulant.experiment import Experiment
from circulant.explore.bounds import SIZES, Bounds
from circulant.explore.causes import ended, hopeless
from circulant.explore.units import given, multiplications, resized, units
from circulant.extras import TRAINING, extras
from circulant.run.untrained import sized, untrained
from circulant.sim.metrics import shown, words
from circulant.sim.refusal import Refusal, ToolError
from circulant.sweep.point import Point, plain
from circulant.sweep.rows import Row
from circulant.sweep.run import Evaluate, run
from circulant.sweep.work import OVER

__all__ = ["WIDTHS", "Decision", "Models", "phase_one", "points_lost"]

WIDTHS = 5
"""The rule by which units are chosen."""

START = 8
"""The block size to start with where smaller ones fit, too: that of the papers."""


@dataclass(frozen=True)
class Decision:
    """A training of phase I and what follows from it.

    Parameters:
        step: of the rules, 1 to 5.
        block_size, cell: in words, of rule 5 with the units.
        score: metric of the block-circulant network in float; None where the training failed.
        lost: points of the metric against the dense baseline.
        kept: whether the exploration goes on from it.
        why: a sentence.
    """

    step: int
    block_size: str
    cell: str
    score: float | None
    lost: float | None
    kept: bool
    why: str


@dataclass(frozen=True)
class Models:
    """The outcome of phase I.

    Parameters:
        chosen: the experiment that phase II goes on with.
        decisions: in their order.
        trained: every experiment that was trained and keeps the accuracy, the chosen one last.
        left: those that were trained and lose more.
        dense: metric of the dense baseline.
        ended: why it ended before its rules did; empty otherwise.
    """

    chosen: Experiment
    decisions: tuple[Decision, ...]
    trained: tuple[Experiment, ...]
    dense: float
    metric: str
    higher_is_better: bool
    ended: str = ""
    left: tuple[Experiment, ...] = ()


def points_lost(score: float, dense: float, *, higher_is_better: bool) -> float:
    """Points of the metric (hundredths) that a score is worse than the dense one."""
    return 100 * ((dense - score) if higher_is_better else (score - dense))


def phase_one(experiment: Experiment, limits: Bounds, allowed: float, *, deadline: float = math.inf,
              share: float = math.inf, widths: bool = False, evaluate: Evaluate = run) -> Models:
    """The model with the largest blocks that keeps the accuracy, by the rules above.

    Parameters:
        allowed: points of the metric that may be lost against the dense baseline.
        deadline: of `time.monotonic`; no training begins after it, and the one at work ends with its epoch.
        share: a deadline before that one, from the first model on that keeps the accuracy.
        widths: whether the number of units is chosen, too.
        evaluate: trains, and need give ``dense``, ``circulant``, ``metric``, ``higher_is_better`` and ``reason``.

    Raises:
        Refusal: when the smallest block size that fits loses more, or the deadline comes before a model is kept.
        Refusal, ToolError: when trainings fail again and again.
    """
    search = _PhaseOne(allowed, deadline, share, evaluate)
    chosen = search.double(experiment, limits)
    for step in (search.coarsen, search.exchange, *((search.widen,) if widths else ())):
        chosen = step(chosen)
    return search.outcome(chosen)


class _PhaseOne:
    """The decisions so far."""

    def __init__(self, allowed: float, deadline: float, share: float, evaluate: Evaluate) -> None:
        self._allowed, self._deadlines, self._evaluate = allowed, (deadline, share), evaluate
        self._decisions: list[Decision] = []
        self._kept: list[Experiment] = []
        self._left: list[Experiment] = []
        self._first: Row = {}
        self._rows: list[Row] = []
        self._ended = ""

    @property
    def deadline(self) -> float:
        """The end of the next training."""
        return min(self._deadlines) if self._kept else self._deadlines[0]

    def double(self, experiment: Experiment, limits: Bounds) -> Experiment:
        """Rules 1 and 2."""
        size = first = min(max(limits.low, START), limits.high)
        modules = _modules(experiment)
        while not self._try(1 if size == first else 2, sized(experiment, size)):
            lost = self._decisions[-1].score is not None
            if lost and size > 1 and all(modules) and self._try(2, _apart(experiment, modules, size, 1)):
                break
            size //= 2
            if size < limits.low or self._ended:
                break
        whole = bool(self._kept) and self._kept[-1].compression.block_size == size
        while self._kept and first <= size and 2 * size <= limits.high and self._try(
                2, sized(experiment, 2 * size) if whole else _apart(experiment, modules, 2 * size, 1)):
            size *= 2
        if not self._kept:
            last = self._decisions[-1]
            if last.score is None:
                raise self._failed()
            raise Refusal(f"Some block size that fits must keep the accuracy, but k = {last.block_size} {last.why}; "
                          "raise --accuracy-loss, or take a larger --device")
        return self._kept[-1]

    def coarsen(self, chosen: Experiment) -> Experiment:
        """Rule 3."""
        size = chosen.compression.block_size
        modules = _modules(chosen)
        if isinstance(size, int) and size > 1 and all(modules):
            self._try(3, _apart(chosen, modules, size, min(SIZES[-1], 2 * size)))
        return self._kept[-1]

    def exchange(self, chosen: Experiment) -> Experiment:
        """Rule 4."""
        model = chosen.model
        if "lstm" not in (model.kind, model.cell if model.kind in ("labeller", "crnn") else ""):
            return chosen
        kind, cell = ("gru", model.cell) if model.kind == "lstm" else (model.kind, "gru")
        other = replace(chosen, model=replace(model, kind=kind, cell=cell, projection=0, peephole=False))
        size = chosen.compression.block_size
        if not isinstance(size, int):  # Its matrices have other names.
            recurrent, others = _modules(chosen)
            other = _apart(other, _modules(other), size[recurrent[0]], size[others[0]])
        self._try(4, other)
        return self._kept[-1]

    def widen(self, chosen: Experiment) -> Experiment:
        """Rule 5."""
        key = units(chosen)
        if key is None:
            return self._kept[-1]
        most = multiplications(untrained(chosen))
        for wider in (True, False):
            before = self._kept[-1]
            while ((each := _at_cost(self._kept[-1], key, most, wider=wider)) is not None
                   and self._try(WIDTHS, each, better=True)):
                pass
            if self._kept[-1] is not before:
                break
        return self._kept[-1]

    def outcome(self, chosen: Experiment) -> Models:
        return Models(chosen, tuple(self._decisions), tuple(self._kept), self._first["dense"],
                      metric=self._first["metric"], higher_is_better=self._first["higher_is_better"], ended=self._ended,
                      left=tuple(self._left))

    def _try(self, step: int, experiment: Experiment, *, better: bool = False) -> bool:
        """Train an experiment, decide, and say whether it is kept, if need be only where it is ``better`` than the last
        one that was."""
        if self._decisions and time.monotonic() > self.deadline:
            self._ended = f"the time was over before rule {step}"
            return False
        row, = self._evaluate([Point(experiment.name, experiment)], deadline=self.deadline)
        self._rows.append(row)
        score = row.get("circulant")
        if score is None:
            self._decide(step, experiment, score=None, lost=None, kept=False, why=f"fails: {row['reason']}")
            if row["reason"].startswith(OVER):
                self._ended = row["reason"]
            elif not self._kept and hopeless(self._rows, same=2):
                raise self._failed()
            return False
        self._first = self._first or row
        lost = points_lost(score, self._first["dense"], higher_is_better=self._first["higher_is_better"])
        metric = self._first["metric"]
        compared = (f"has {words(metric)} {shown(metric, score)}, {_points(lost)} than the dense "
                    f"{shown(metric, self._first['dense'])}, and {self._allowed:g} may be lost")
        least = next(each.lost for each in reversed(self._decisions) if each.kept) if better else None
        if least is not None:
            compared += f"; the best one before is {_points(least)}"
        if row["reason"]:
            self._decide(step, experiment, score=score, lost=lost, kept=False, why=f"has no design: {row['reason']}")
            return False
        kept = lost <= self._allowed and (least is None or lost < least)
        self._decide(step, experiment, score=score, lost=lost, kept=kept, why=compared)
        (self._kept if kept else self._left).append(experiment)
        return kept

    def _failed(self) -> Refusal | ToolError:
        last = self._decisions[-1]
        if self._ended:
            return Refusal(f"--hours must be enough for a model that keeps the accuracy, but {self._ended}; allow more")
        return ended(f"Trainings must end to choose by them, but the last of {len(self._rows)}, k = {last.block_size}, "
                     f"{last.why}; correct that, and the same command goes on", self._rows)

    def _decide(self, step: int, experiment: Experiment, *, score: float | None, lost: float | None, kept: bool,
                why: str) -> None:
        model, key = experiment.model, units(experiment)
        cell = model.cell if model.kind in ("labeller", "crnn") else model.kind
        if step == WIDTHS and key:
            cell += f", {given(experiment, key)} {key}"
        self._decisions.append(Decision(step, str(plain(experiment.compression.block_size)), cell=cell, score=score,
                                        lost=lost, kept=kept, why=why))


def _points(lost: float) -> str:
    return f"{abs(lost):.2f} points {'worse' if lost >= 0 else 'better'}"


def _at_cost(experiment: Experiment, key: str, most: int, *, wider: bool) -> Experiment | None:
    """The experiment with twice the units and the smallest blocks that keep the multiplications, or half of the units
    and blocks a half, a quarter or an eighth as large; None where there is none."""
    sizes, count = experiment.compression.block_size, given(experiment, key)

    def scaled(size: int, scale: float) -> int:
        return size if size == 1 else int(size * scale)

    for scale in (1.0, 2.0, 4.0, 8.0) if wider else (1 / 8, 1 / 4, 1 / 2):
        changed = scaled(sizes, scale) if isinstance(sizes, int) else {
            name: scaled(size, scale) for name, size in sizes.items()}
        values = [changed] if isinstance(changed, int) else changed.values()
        if count > 1 and min(values) > 0 and max(values) <= SIZES[-1]:
            each = sized(resized(experiment, key, 2 * count if wider else count // 2), changed)
            if multiplications(untrained(each)) <= most:
                return each
    return None


def _apart(experiment: Experiment, modules: tuple[Sequence[str], Sequence[str]], size: int, other: int) -> Experiment:
    """The experiment with a block size of recurrent layers, and another one of the other modules."""
    recurrent, others = modules
    return sized(experiment, dict.fromkeys(recurrent, size) | dict.fromkeys(others, other))


def _modules(experiment: Experiment) -> tuple[Sequence[str], Sequence[str]]:
    """The modules of block-circulant matrices: those of recurrent layers, and the others."""
    with extras("circulant explore", *TRAINING):
        from circulant import training

    tables: Mapping[str, Any] = experiment.tables(("data", "model"))
    data, model = training.load_data(**tables["data"]), training.ModelSettings(**tables["model"])
    sizes = training.assign(training.build(model, data.shape, data.classes), 4, model.dense)
    modules = dict.fromkeys(name.rpartition(".")[0] for name, size in sizes.items() if size > 1)
    recurrent = [name for name in modules if any(each.startswith(f"{name}.weight_hh") for each in sizes)]
    return recurrent, [name for name in modules if name not in recurrent]
