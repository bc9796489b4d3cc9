"""Points that are computed: every training, then every point, in this process or in several; rows in their order."""
import json
import math
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any, cast

from circulant.progress import Show, silent
from circulant.sweep import cluster, store
from circulant.sweep.point import Point, plain
from circulant.sweep.processes import Processes, Task, side_by_side
from circulant.sweep.rows import Row, Trained
from circulant.sweep.work import epochs, evaluate, keyed, train

__all__ = ["Evaluate", "Jobs", "run"]

Jobs = int | str
"""Processes of this machine, or the address of a Dask scheduler."""

Evaluate = Callable[..., list[Row]]
"""`run`, or what takes points, ``measure`` and ``deadline`` as it does."""


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
    until = time.time() + deadline - time.monotonic()  # Machines have the time of the day in common.
    found, rows = dict[str, Any](), dict[int, Row]()
    lengths, model_of, members = dict[str, int](), dict[int, str](), dict[str, list[int]]()
    dense, models, designs = stages = dict[str, Task](), dict[str, Task](), dict[str, Task]()

    def epoch(point: Point, done: int, words: str) -> None:
        show("training", sum(lengths[key] for key in found) + done, sum(lengths.values()),
             f"{point.label}, k = {point.block_size}: {words}")

    def training(point: Point) -> Callable[..., Trained]:
        alone = partial(train, point, until=until)  # Only in this process can it report its epochs.
        return partial(alone, note=partial(epoch, point)) if jobs == 1 else alone

    for number, group in enumerate(_grouped(points, range(len(points)), lambda point: point.training)):
        point, key, after = points[group[0]], f"model {number}", None
        if base := point.baseline:  # Block sizes share it.
            after = f"dense {json.dumps(base.training)}"
            dense[after], lengths[after] = Task(training(base)), epochs(base, dense=True)
        models[key], lengths[key] = Task(training(point), after), epochs(point)
        model_of |= dict.fromkeys(group, key)
        for turn, some in enumerate(_grouped(points, group, lambda point: point.network)):
            members[name := f"points {number} {turn}"] = some
            designs[name] = Task(partial(evaluate, [points[at] for at in some], measure=measure, until=until), key)
    afar = isinstance(jobs, str)
    computed = cluster.compute(jobs, dense | models | designs) if isinstance(jobs, str) else _local(stages, found, jobs)
    with closing(computed):
        for key, result in computed:
            found[key] = result
            for place, at in enumerate(members.get(key, ())):  # One result for all says why its process ended.
                rows[at] = cast(Row, result) if isinstance(result, dict) else result[place]
                if afar and "reason" not in rows[at]:
                    store.keep(keyed(points[at], found[model_of[at]], measure), rows[at])
            if afar:
                trained = sum(key in found for key in model_of.values())
                show("points", len(rows), len(points), f"{trained} with a model{_failed(rows.values(), ', ')}")
            elif key in designs:
                show("points", len(rows), len(points), _failed(rows.values()))
            else:
                stage = models if key in models else dense
                ended = [found[key] for key in stage if key in found]
                show("training", sum(lengths[key] for key in found), sum(lengths.values()),
                     f"{len(ended)} of {len(stage)} models{_failed(ended, ', ')}")
                if len(found) == len(lengths):
                    show("points", 0, len(points))
    return [_row(point, measure, found[model_of[at]], rows[at]) for at, point in enumerate(points)]


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


def _local(stages: Sequence[Mapping[str, Task]], found: Mapping[str, Any], jobs: int
           ) -> Generator[tuple[str, Any], None, None]:
    """Key and result of each task, stage by stage; ``found`` gets those before."""
    with Processes(jobs) as processes:
        for stage in stages:
            keys = [*stage]
            calls = [partial(task.call, *([found[task.after]] if task.after else [])) for task in stage.values()]
            yield from ((keys[at], result) for at, result in side_by_side(calls, processes))


def _failed(found: Iterable[Trained | Row], before: str = "") -> str:
    """How many failed, and why the last one; empty where none did."""
    whys = [each["reason"] for each in found if "reason" in each]
    return f"{before}{len(whys)} failed{', the last one' if len(whys) > 1 else ''}: {whys[-1]}" if whys else ""
