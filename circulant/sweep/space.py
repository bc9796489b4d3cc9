"""The space of a ``[[grid]]``: an experiment, and for each key that varies the values that it may take."""
import itertools
import math
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from circulant.experiment import Experiment, Quantization, Training, load
from circulant.experiment import shipped as experiments
from circulant.hardware import Hardware
from circulant.sim.files.schema import shown
from circulant.sim.refusal import Refusal, nearest
from circulant.sim.settings import keys, title
from circulant.sweep.point import Point
from circulant.training.settings import CompressionSettings

__all__ = ["AXES", "Axis", "Space", "read_space"]

AXES = {"block_size": CompressionSettings, "weight_bits": Quantization, "activation_bits": Quantization,
        "multipliers": Hardware, "seed": Training}
"""Keys that a grid varies, and the table of the experiment that has it. What a grid leaves out stays as it is."""

KEYS = ("experiment", "name", "set", *AXES)


@dataclass(frozen=True)
class Axis:
    """A dimension of a space.

    Parameters:
        key: one of `AXES`.
        matrix: the entry of a table of block sizes or bit widths that it varies; empty for the whole key.
        values: all of them legal, none twice.
    """

    key: str
    matrix: str
    values: tuple[Any, ...]

    @property
    def name(self) -> str:
        """Key and entry: "block_size.gru"."""
        return f"{self.key}.{self.matrix}" if self.matrix else self.key

    @property
    def ordered(self) -> bool:
        """Whether the values are numbers, smallest first."""
        return all(isinstance(value, int) for value in self.values) and list(self.values) == sorted(self.values)


@dataclass(frozen=True)
class Space:
    """All combinations of the values of some axes.

    Parameters:
        label: tells it from others, in tables and pictures.
        experiment: what stays as it is.
    """

    label: str
    experiment: Experiment
    axes: tuple[Axis, ...]

    @cached_property
    def size(self) -> int:
        """Number of combinations."""
        return math.prod(len(axis.values) for axis in self.axes)

    @property
    def points(self) -> Iterator[Point]:
        """Every combination; the last axis changes fastest."""
        return map(self.point, itertools.product(*(range(len(axis.values)) for axis in self.axes)))

    def point(self, at: Sequence[int]) -> Point:
        """The combination of the values with these indices, one for each axis."""
        values: MutableMapping[str, Any] = {}
        for axis, index in zip(self.axes, at, strict=True):
            if axis.matrix:
                values.setdefault(axis.key, {})[axis.matrix] = axis.values[index]
            else:
                values[axis.key] = axis.values[index]
        experiment = self.experiment
        for name, value in values.items():
            table = title(AXES[name])
            experiment = replace(experiment, **{table: replace(getattr(experiment, table), **{name: value})})
        return Point(self.label, experiment)


def read_space(grid: Mapping[str, Any], folder: Path) -> tuple[Space | None, list[str]]:
    """The space of a table ``[[grid]]``, or None and what is wrong with it.

    Parameters:
        folder: where the path of an experiment starts.
    """
    problems = [f"there is no key {shown(word)}{nearest(word, KEYS) or '; the keys are ' + ', '.join(KEYS)}"
                for word in grid if word not in KEYS]
    axes: list[Axis] = []
    for name in AXES:
        if name in grid:
            made, wrong = _axes(name, grid[name])
            axes += made
            problems += wrong
    overrides = grid.get("set", [])
    if not isinstance(overrides, list) or not all(isinstance(entry, str) for entry in overrides):
        problems.append(f'set must be a list of strings like "training.seed=1", not {shown(overrides)}')
        overrides = []
    experiment = None
    try:
        experiment = _experiment(grid.get("experiment"), folder, overrides)
    except Refusal as refusal:
        problems += str(refusal).split("\n")
    if experiment is None or problems:
        return None, problems
    label = grid.get("name", experiment.name)
    if not isinstance(label, str) or not label:
        return None, [f"name must be a string that tells the grid from others, not {shown(label)}"]
    return Space(label, experiment, tuple(axes)), []


def _axes(name: str, given: Any) -> tuple[list[Axis], list[str]]:
    """The axis of a list of values, or those of a table of lists, one for each matrix or layer that it names."""
    rule, kind, _ = keys(AXES[name])[name]
    entries = kind is not int
    problems = []
    lists = given if entries and isinstance(given, Mapping) and given else {"": given}
    for word, values in lists.items():
        said = f"{name}.{word}" if word else name
        if not isinstance(values, list) or not values:
            return [], [f"{said} must be a list of values, each {rule.rule(int if word else kind)}"
                        f"{'; or a table from matrix name to such a list' if entries and not word else ''}, "
                        f"not {shown(values)}"]
        legal = int if word else kind
        problems += [f"each of {said} must be {rule.rule(legal)}, not {shown(value)}"
                     for value in values if rule.refuses(value, legal)]
        if any(value in values[:at] for at, value in enumerate(values)):
            problems.append(f"{said} must have each value once, not {shown(values)}")
    return [] if problems else [Axis(name, word, tuple(values)) for word, values in lists.items()], problems


def _experiment(source: Any, folder: Path, overrides: list[str]) -> Experiment:
    if not isinstance(source, str):
        raise Refusal(f"experiment must be a shipped one ({', '.join(experiments())}) or a path, not {shown(source)}")
    return load(source if source in experiments() else folder / source, overrides)
