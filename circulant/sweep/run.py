"""Points that are computed: every training, then every point, in this process or in several; rows in their order."""
import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from circulant.progress import Show, silent
from circulant.sweep import store
from circulant.sweep.point import Point, plain
from circulant.sweep.processes import Processes, side_by_side
from circulant.sweep.rows import Failure, Row, Trained
from circulant.sweep.work import epochs, evaluate, keyed, train

__all__ = ["Jobs", "run"]

Jobs = int | str
"""Processes of this machine, or the address of a Dask scheduler."""


def run(points: Sequence[Point], *, measure: str = "plan", jobs: Jobs = 1, show: Show = silent,
        deadline: float = math.inf) -> list[Row]:
    """Train and evaluate every point. A failure becomes a row with its reason; the other points go on.

    Parameters:
        measure: where the figures of the hardware come from: one of `circulant.sweep.grid.MEASURES`.
        jobs: processes, 1 for this one alone; or the address of a Dask scheduler.
        deadline: of `time.monotonic`, after which no training begins, and each ends with the epoch that it is in; nor
            is a point evaluated that is not kept from before.

    Raises:
        Refusal: as `circulant.sweep.cluster.compute`.
        KeyboardInterrupt: what is computed by then is kept, and found by the next run.
    """
    trainings = _grouped(points, range(len(points)), lambda point: point.training)
    until = time.time() + deadline - time.monotonic()  # Machines have the time of the day in common.
    if isinstance(jobs, str):
        trained, found = _clustered(points, trainings, measure=measure, address=jobs, show=show, until=until)
        return [_row(point, measure, trained[at], found[at]) for at, point in enumerate(points)]
    with Processes(jobs) as processes:
        models = _trained([points[group[0]] for group in trainings], processes, show, until)
        trained = {at: model for group, model in zip(trainings, models, strict=True) for at in group}
        networks = _grouped(points, [at for at in trained if "reason" not in trained[at]], lambda point: point.network)
        found = {at: Row(**cast(Failure, model)) for at, model in trained.items() if "reason" in model}
        found |= _evaluated(points, networks, trained, measure=measure, processes=processes, show=show, until=until)
    return [_row(point, measure, trained[at], found[at]) for at, point in enumerate(points)]


def _row(point: Point, measure: str, trained: Trained, found: Row) -> Row:
    experiment = point.experiment
    row = Row(experiment=point.label, block_size=point.block_size, weight_bits=plain(
        experiment.quantization.weight_bits), activation_bits=experiment.quantization.activation_bits,
        budget=experiment.hardware.multipliers, seed=experiment.training.seed, measure=measure, reason="")
    if "reason" not in trained:
        row["metric"], row["higher_is_better"] = trained["metric"], trained["higher_is_better"]
        if learned := trained["block_size"]:  # By a search.
            row["block_size"] = str(plain(learned))
        if "dense" in trained["scores"]:
            row["dense"] = trained["scores"]["dense"]
        row["circulant"] = trained["scores"]["circulant"]
    return row | found


def _grouped(points: Sequence[Point], among: Iterable[int], tables: Callable[[Point], Mapping[str, Any]]
             ) -> list[list[int]]:
    """Indices of points whose tables are the same."""
    groups: dict[str, list[int]] = {}
    for at in among:
        groups.setdefault(json.dumps(tables(points[at])), []).append(at)
    return list(groups.values())


def _trained(points: list[Point], processes: Processes, show: Show, until: float) -> list[Trained]:
    """The training of each point: first the dense baselines, which block sizes share. Progress counts epochs."""
    bases = {json.dumps(base.training): base for point in points if (base := point.baseline)}
    lengths = [epochs(base, dense=True) for base in bases.values()], [*map(epochs, points)]
    total, before = sum(map(sum, lengths)), 0

    def phase(some: list[Point], dense: Sequence[Trained | None], lengths: list[int]) -> list[Trained]:
        nonlocal before
        found: list[Trained] = [{} for _ in some]

        def note(point: Point, done: int, words: str) -> None:
            show("training", before + done, total, f"{point.label}, k = {point.block_size}: {words}")

        # Only in this process can a training report its epochs.
        tasks = [partial(train, point, base, *[partial(note, point)][:processes.jobs == 1], until=until)
                 for point, base in zip(some, dense, strict=True)]
        for at, result in side_by_side(tasks, processes):
            found[at] = result
            before += lengths[at]
            show("training", before, total, f"{sum(map(bool, found))} of {len(some)} models{_failed(found, ', ')}")
        return found

    dense = dict(zip(bases, phase([*bases.values()], [None] * len(bases), lengths[0]), strict=True))
    return phase(points, [dense[json.dumps(base.training)] if (base := point.baseline) else None for point in points],
                 lengths[1])


def _evaluated(points: Sequence[Point], networks: list[list[int]], trained: Mapping[int, Trained], measure: str,
               processes: Processes, show: Show, until: float) -> dict[int, Row]:
    """The figures of each point; progress counts points."""
    total, found = sum(map(len, networks)), dict[int, Row]()
    show("points", 0, total)
    tasks = [partial(evaluate, [points[at] for at in group], trained[group[0]], measure, until=until)
             for group in networks]
    for number, results in side_by_side(tasks, processes):
        group = networks[number]
        if isinstance(results, dict):  # Why its process ended.
            results = [results] * len(group)
        found |= zip(group, results, strict=True)
        show("points", len(found), total, _failed(found.values()))
    return found


def _failed(found: Iterable[Trained | Row], before: str = "") -> str:
    """How many failed, and why the last one; empty where none did."""
    whys = [each["reason"] for each in found if "reason" in each]
    return f"{before}{len(whys)} failed{', the last one' if len(whys) > 1 else ''}: {whys[-1]}" if whys else ""


def _clustered(points: Sequence[Point], trainings: list[list[int]], *, measure: str, address: str, show: Show,
               until: float) -> tuple[dict[int, Trained], dict[int, Row]]:
    """The training and the figures of each point, computed on a cluster; what comes is kept in this machine's store."""
    from circulant.sweep import cluster

    tasks: dict[str, cluster.Task] = {}
    members: dict[str, list[int]] = {}
    for number, group in enumerate(trainings):
        point, after = points[group[0]], None
        if base := point.baseline:
            after = f"dense {json.dumps(base.training)}"
            tasks.setdefault(after, cluster.Task(partial(cluster.training, base, until=until)))
        tasks[f"train {number}"] = cluster.Task(partial(cluster.training, point, until=until), after)
        members[f"train {number}"] = group
        for turn, some in enumerate(_grouped(points, group, lambda point: point.network)):
            key = f"points {number} {turn}"
            tasks[key] = cluster.Task(partial(cluster.evaluation, [points[at] for at in some], measure, until=until),
                                      f"train {number}")
            members[key] = some
    trained, found = dict[int, Trained](), dict[int, Row]()
    show("points", 0, len(points))
    for key, result in cluster.compute(address, tasks):
        mine = members.get(key, [])
        if key.startswith("train "):
            trained |= dict.fromkeys(mine, cluster.unpacked(result))
        elif mine:
            found |= zip(mine, [cast(Row, result)] * len(mine) if isinstance(result, dict) else result, strict=True)
        show("points", len(found), len(points), f"{len(trained)} with a model{_failed(found.values(), ', ')}")
    for at, figures in found.items():
        if "reason" not in figures:
            store.keep(keyed(points[at], trained[at], measure), figures)
    return trained, found
