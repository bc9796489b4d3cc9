"""The fair comparison: dense networks of fewer units, of 4 and of 8 bits, that cost as much as the chosen design.

Block-circulant matrices are one way to a small network, and the simplest other one is a small dense network. Here they
have equal multiplications, or equal weight bits, equally many epochs, and the same samples.
"""
import math
import statistics
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from circulant.experiment import Experiment
from circulant.explore.causes import reasons
from circulant.explore.seeds import in_turn
from circulant.explore.units import given, multiplications, resized, units
from circulant.report.seeds import few, spread
from circulant.run.untrained import sized, untrained
from circulant.sim.golden.network import Network
from circulant.sim.metrics import PARTS, words
from circulant.sim.quantize.bitwidth_cost import weight_count
from circulant.sweep.goal import loss
from circulant.sweep.pareto import mean
from circulant.sweep.point import Point
from circulant.sweep.rows import Row
from circulant.sweep.run import Evaluate, run

__all__ = ["BITS", "Comparison", "compare"]

BITS = (4, 8)
"""Bits of the weights of the dense networks."""

EQUAL = {"multiplications": "multiplications", "weight_memory_bits": "weight bits"}


@dataclass(frozen=True)
class Comparison:
    """The outcome.

    Parameters:
        rows: of the dense networks, each with ``equal``, the cost that is that of the design, and ``units``; of several
            seeds their means, as `circulant.sweep.pareto.mean`.
        points: of the rows, those of the first seed.
        verdicts: sentences; whether block-circulant is the right choice.
        wrong: whether a dense network is better at equal multiplications and at equal weight bits.
    """

    rows: tuple[Row, ...] = ()
    points: tuple[Point, ...] = ()
    verdicts: tuple[str, ...] = ()
    wrong: bool = False


def compare(chosen: Experiment, row: Row, *, samples: int, others: Sequence[Row] = (), deadline: float = math.inf,
            evaluate: Evaluate = run, network_of: Callable[[Experiment], Network] = untrained) -> Comparison:
    """Train and evaluate dense networks that cost what the chosen design costs.

    Parameters:
        row: of the chosen design.
        samples: on which scores were measured.
        others: rows of the chosen design from other seeds; dense networks are trained from as many.
        deadline: as for `circulant.sweep.run.run`.
        network_of: makes the untrained network of an experiment.
    """
    key = units(chosen)
    if key is None:
        return Comparison(verdicts=(f"There is no dense network to compare with: a model {chosen.model.kind!r} has no "
                                    "number of units that could be smaller"
                                    + ("; give its file one as model.arguments.hidden" if chosen.model.kind == "python"
                                       else "") + ".",))
    points, about = [], list[Row]()
    for equal in EQUAL:
        for bits in BITS:
            allowed = row["multiplications"] if equal == "multiplications" else row["weight_memory_bits"] // bits
            if count := _most(chosen, key, equal, allowed, network_of):
                points.append(Point(f"{chosen.name}, dense", _dense(chosen, key, count, bits)))
                about.append(Row(equal=equal, units=count, said=f"dense, {count} {key}, {bits} bits"))
    seeds = [chosen.training.seed, *(int(each["seed"]) for each in others)]
    found = in_turn([[_seeded(point, seed) for point in points] for seed in seeds], evaluate, deadline)
    rows = [_averaged(found[at::len(points)]) | its for at, its in enumerate(about)]
    verdicts, wrong = _judged(row, [row, *others], rows, samples)
    return Comparison(tuple(rows), tuple(points), verdicts, wrong)


def _seeded(point: Point, seed: int) -> Point:
    experiment = point.experiment
    return replace(point, experiment=replace(experiment, training=replace(experiment.training, seed=seed)))


def _averaged(rows: Sequence[Row]) -> Row:
    """The mean of the rows of a network that did not fail, with the scores ``each``; the first one where all did."""
    made = [row for row in rows if not row["reason"]]
    return mean(made) | Row(each=[row["quantized"] for row in made]) if made else rows[0]


def _dense(chosen: Experiment, key: str, count: int, bits: int) -> Experiment:
    """A dense experiment of so many units, trained for as many epochs as the block-circulant one in all."""
    training = chosen.training
    rest = training.direct_epochs if training.method == "direct" else training.admm_epochs + training.retrain_epochs
    return sized(replace(
        resized(chosen, key, count), quantization=replace(chosen.quantization, weight_bits=bits), training=replace(
            training, method="admm", dense_epochs=training.dense_epochs + rest, admm_epochs=0, retrain_epochs=0,
            distillation=0.0, hints=0.0)), 1)


def _most(chosen: Experiment, key: str, equal: str, allowed: int, network_of: Callable[[Experiment], Network]) -> int:
    """The greatest number of units that keeps a cost; 0 where a single one exceeds it."""
    cost = multiplications if equal == "multiplications" else weight_count
    return bisect_right(range(1, max(2, given(chosen, key) or 64)), allowed,
                        key=lambda count: cost(network_of(_dense(chosen, key, count, 8))))


def _judged(chosen: Row, seeds: Sequence[Row], rows: list[Row], samples: int) -> tuple[tuple[str, ...], bool]:
    """A sentence for each cost, and one that sums up, unless dense networks are missing; means are compared."""
    said, lost, unknown = [], [], False
    metric, scores = chosen["metric"], [row["quantized"] for row in seeds]
    ours = statistics.fmean(map(loss, seeds))
    for equal, name in EQUAL.items():
        every = [row for row in rows if row["equal"] == equal]
        made = [row for row in every if not row["reason"]]
        if not made:
            unknown = unknown or bool(every)
            said.append(f"At equal {name} there is no dense network" + (f": {reasons(every)}" if every else "") + ".")
            continue
        best = min(made, key=loss)
        gain = loss(best) - ours
        chance = math.hypot(_chance(ours, loss(best), samples) if metric in PARTS else 0.0,
                            _deviation(scores), _deviation(best["each"]))
        told = "as good as" if abs(gain) <= chance else "better than" if gain > 0 else "worse than"
        lost.append(gain < -chance)
        said.append(f"At equal {name} the block-circulant design ({words(metric)} {spread(metric, scores)}) is {told} "
                    f"the best dense network ({best['said']}: {spread(metric, best['each'])})"
                    + (f", as far as {samples:,} samples can tell." if chance and told == "as good as" else "."))
    wrong = len(lost) == len(EQUAL) and all(lost)
    if lost:
        count = min([len(seeds), *(len(row["each"]) for row in rows if not row["reason"])])
        said.append(f"Each network here has {f'{count} seeds' if count > 1 else 'one seed'}.{few(count)}")
    if any(lost) or not unknown:
        said.append("Block-circulant is the wrong choice here: take the dense network." if wrong else
                    "Block-circulant is not the better choice in everything." if any(lost) else
                    "Block-circulant is no wrong choice here.")
    return tuple(said), wrong


def _deviation(scores: Sequence[float]) -> float:
    """The standard error of a mean over seeds; 0 of one seed, which shows none."""
    return statistics.stdev(scores) / math.sqrt(len(scores)) if len(scores) > 1 else 0.0


def _chance(one: float, other: float, samples: int) -> float:
    """The standard error of a difference of two shares that were measured on as many samples."""
    return math.sqrt(max(1e-9, one * (1 - one) + other * (1 - other)) / max(1, samples))
