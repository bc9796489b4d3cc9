"""A search through spaces that are too large for every point: Optuna proposes points, the sweep evaluates them.

The study of a space keeps what was proposed and found, in a file beside the results or in any storage that Optuna
takes. What a trial draws depends on the seed and its number alone, so that a search that was interrupted goes on as if
it had not been.
"""
import fcntl
import json
import random
import time
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import CategoricalDistribution, IntDistribution
from optuna.exceptions import UpdateFinishedTrialError
from optuna.samplers import BaseSampler, NSGAIISampler, RandomSampler, TPESampler
from optuna.storages import BaseStorage, get_storage
from optuna.study import Study
from optuna.trial import Trial, TrialState

from circulant.experiment import Experiment
from circulant.progress import Show, silent
from circulant.sim import artifact
from circulant.sim.files.writing import naming
from circulant.sim.refusal import Refusal
from circulant.sweep.goal import FIGURES, Search
from circulant.sweep.grid import Sweep
from circulant.sweep.rows import Row
from circulant.sweep.run import Jobs, run
from circulant.sweep.space import Space

__all__ = ["BATCH", "search"]

BATCH = 20
"""Points that are proposed together: a generation of NSGA-II, and what several processes work on."""

SAMPLERS: Mapping[str, Callable[..., BaseSampler]] = {
    "random": RandomSampler, "tpe": TPESampler, "nsga2": partial(NSGAIISampler, population_size=BATCH)}

PATIENCE = 5
"""Proposals for each point that is asked for; a method that only repeats itself ends there."""

PAUSES = (0.05, 0.2, 0.5)
"""Seconds between attempts to open a storage."""

Choice = tuple[int, ...]
"""The index of the value of each axis."""


def search(sweep: Sweep, folder: Path, *, jobs: Jobs = 1, show: Show = silent) -> list[Row]:
    """Evaluate the points that a search proposes in each space; rows in the order of their first proposal.

    Parameters:
        sweep: with a search.
        folder: of the results; it holds the study where the search names no storage.
        jobs: processes, 1 for this one alone; or the address of a Dask scheduler.

    Raises:
        Refusal: when the storage cannot be opened, or holds the study of another search under this one's name.
        KeyboardInterrupt: what is computed by then is kept, and found by the next search.
    """
    assert sweep.search is not None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with naming(folder):
        folder.mkdir(parents=True, exist_ok=True)
    url = sweep.search.storage or f"sqlite:///{folder.resolve() / 'search.db'}"
    with _alone(folder):
        return [row for space in sweep.spaces for row in _searched(sweep, space, url, jobs=jobs, show=show)]


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """A block in which no other search works in ``folder``."""
    with naming(folder), (folder / "search.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refusal(f"A search must have its folder for itself, but another one is at work in {folder}; wait "
                          "for its end, or take another --out") from None
        yield


def _searched(sweep: Sweep, space: Space, url: str, *, jobs: Jobs, show: Show) -> list[Row]:
    goal = sweep.search
    assert goal is not None
    study, wanted = _study(sweep, space, url), min(goal.points, space.size)
    told = [trial for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.FAIL))
            if "row" in trial.user_attrs]
    known: dict[Choice, Row] = {_choice(space, trial.params): json.loads(trial.user_attrs["row"]) for trial in told}
    asked = len(told)

    def progress(task: str, done: int, total: int, note: str = "") -> None:
        if task == "points":
            done, total = done + len(known), wanted
        show(task, done, total, note)

    while len(known) < wanted and asked < PATIENCE * goal.points:
        trials = [_ask(study, goal, space, asked + number) for number in range(min(BATCH, wanted - len(known)))]
        asked += len(trials)
        choices = [_choice(space, trial.params) for trial in trials]
        fresh = [choice for choice in dict.fromkeys(choices) if choice not in known]
        rows = run([space.point(choice) for choice in fresh], measure=sweep.measure, jobs=jobs, show=progress)
        known |= zip(fresh, (_judged(row, goal) for row in rows), strict=True)
        try:
            for trial, choice in zip(trials, choices, strict=True):
                _tell(study, trial, known[choice], goal)
        except UpdateFinishedTrialError:
            raise Refusal("A study must have one search at a time, but another one has gone on with "
                          f"{study.study_name} in {url}; wait for its end, or take another search.storage") from None
        for number in range(len(trials) - len(fresh)):  # A repetition tells the method something, and the user nothing.
            if len(known) < wanted:
                study.enqueue_trial(_unseen(space, known, f"{goal.seed} {asked} {number}"), skip_if_exists=True)
    return list(known.values())


def _study(sweep: Sweep, space: Space, url: str) -> Study:
    """The study of a space, new or as it was left; points that were begun and not finished are proposed first."""
    goal = sweep.search
    assert goal is not None
    name = f"{sweep.name}/{space.label}"
    aim = {word: value for word, value in asdict(goal).items() if word not in ("points", "storage")}
    identity = artifact.digest({"axes": [[axis.name, list(axis.values)] for axis in space.axes], "search": aim,
                                "experiment": _changed(space.experiment), "measure": sweep.measure})
    try:
        study = optuna.create_study(storage=_storage(url), study_name=name, load_if_exists=True,
                                    directions=["minimize"] * len(goal.objectives))
        if study.user_attrs.setdefault("identity", identity) != identity:
            raise Refusal(f"A study must be that of its search, but {name} in {url} was begun with another space, "
                          "method, seed, goal or experiment; take another --out or search.storage, or delete it")
        study.set_user_attr("identity", identity)
        for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            study.tell(trial.number, state=TrialState.FAIL)
            study.enqueue_trial(trial.params)
    except Refusal:
        raise
    except Exception as error:  # The exceptions of SQLAlchemy, of a driver that is missing, of a network.
        said = str(error).strip().splitlines()
        raise Refusal(f"search.storage must be a storage that Optuna can open and write to, but {url} cannot be used: "
                      f"{(said[0] if said else type(error).__name__).rstrip('.')}; end what holds it, or take another "
                      "--out or search.storage") from None
    return study


def _storage(url: str) -> BaseStorage:
    """A storage, after a while where another search makes its tables at this moment."""
    for pause in PAUSES:
        try:
            return get_storage(url)
        except Exception:  # Which one depends on the database.
            time.sleep(pause)
    return get_storage(url)


def _changed(experiment: Experiment) -> Mapping[str, Mapping[str, Any]]:
    """The keys of an experiment that differ from their defaults, so that a study outlives new keys."""
    usual = Experiment().tables()
    return {table: {name: value for name, value in its.items() if value != usual[table][name]}
            for table, its in experiment.identity().items()}


def _choice(space: Space, parameters: Mapping[str, int]) -> Choice:
    return tuple(parameters[axis.name] for axis in space.axes)


def _ask(study: Study, goal: Search, space: Space, number: int) -> Trial:
    """The next trial: indices of values, of which those of tables have no order. Its random numbers depend on the seed
    and on ``number`` alone."""
    sampler = SAMPLERS[goal.method]
    study.sampler = sampler(seed=random.Random(f"{goal.seed} {number}").randrange(2**32))
    return study.ask({axis.name: IntDistribution(0, len(axis.values) - 1) if axis.ordered else
                      CategoricalDistribution(range(len(axis.values))) for axis in space.axes})


def _judged(row: Row, goal: Search) -> Row:
    """A row with the bounds that it breaks; one that lacks a figure of the goal has failed."""
    if row["reason"]:
        return row
    if lacking := [name for name in goal.figures if not FIGURES[name].known(row)]:
        return row | Row(reason=f"A point must have the figures of its search, but {', '.join(lacking)} is not known "
                                "of this network; take others")
    return row | Row(violates=", ".join(goal.violated(row)))


def _tell(study: Study, trial: Trial, row: Row, goal: Search) -> None:
    """Keep the row, and tell the method its objectives and bounds; of a point that failed, that it failed."""
    trial.set_user_attr("row", json.dumps(row))
    if row["reason"]:
        study.tell(trial, state=TrialState.FAIL)
        return
    for name, over in goal.excess(row):
        trial.set_constraint(name, over)
    study.tell(trial, [FIGURES[name].cost(row) for name in goal.objectives])


def _unseen(space: Space, known: Container[Choice], seed: str) -> dict[str, int]:
    """The parameters of a random point that was not evaluated yet."""
    rng = random.Random(seed)
    while True:
        choice = tuple(rng.randrange(len(axis.values)) for axis in space.axes)
        if choice not in known:
            return {axis.name: index for axis, index in zip(space.axes, choice, strict=True)}
