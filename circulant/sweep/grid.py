"""Sweep files: TOML that is read into spaces of experiments, and how they are searched.

```toml
measure = "plan"             # where multipliers and cycles come from

[[grid]]                     # every combination of these lists is a point; there may be several grids
experiment = "digits-gru"    # a shipped one, or a path from this file's folder
set = ["training.seed=1"]    # keys of the experiment that all points of the grid share
block_size = [1, 8, {gru = 8, linear = 4}]
weight_bits = [8, 12]
activation_bits = [12, 16]
multipliers = [32, 64]
```

A table ``[search]`` has the keys of `circulant.sweep.goal.Search`.
"""
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from circulant import experiment
from circulant.sim.files import files, toml
from circulant.sim.files.schema import shown
from circulant.sim.refusal import Refusal, listed, nearest, some
from circulant.sweep.goal import FIGURES, Search, read_search
from circulant.sweep.point import Point
from circulant.sweep.space import Space, read_space

__all__ = ["MEASURES", "Sweep", "read", "shipped"]

MEASURES = {"plan": "the exact prediction", "verilog": "multipliers and memory counted in the generated Verilog",
            "simulate": "cycles measured under Verilator, every output bit compared with the golden model"}
"""Where the figures of the hardware come from; each is slower than the one before."""

KEYS = ("name", "measure", "search", "grid")

MOST = 100_000
"""Points of a sweep without a search."""


@dataclass(frozen=True)
class Sweep:
    """A sweep file.

    Parameters:
        name: names the folder of its results.
        source: how it was named on the command line.
        measure: one of `MEASURES`.
        spaces: one for each table ``[[grid]]``.
        search: how points are chosen; None for every one.
    """

    name: str
    source: str
    measure: str
    spaces: tuple[Space, ...]
    search: Search | None = None

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """Every point of every space."""
        return tuple(point for space in self.spaces for point in space.points)


def shipped() -> tuple[str, ...]:
    """Names of the sweeps that come with the package."""
    return experiment.shipped("sweeps")


def read(source: str) -> Sweep:
    """The sweep of a shipped name or a ``.toml`` file.

    Raises:
        Refusal: an unknown sweep, broken TOML, or one line for each thing that is wrong with it.
    """
    name, folder, text = _find(source)
    try:
        document = toml.parse(text)
    except ValueError as error:
        raise Refusal(f"{source} must be TOML: {error}") from None
    name = document.pop("name", name)
    measure, grids = document.pop("measure", "plan"), document.pop("grid", [])
    search, problems = read_search(document.pop("search", "grid"))
    problems += [f"a sweep has no key {shown(word)}{nearest(word, KEYS)}; its keys are name, measure, search and the "
                 "tables [[grid]]" for word in document]
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
        problems.append(f"name must be letters, digits, '_', '-' and '.', as it names a folder, not {shown(name)}")
    if measure not in MEASURES:
        problems.append(f"measure must be one of {', '.join(map(repr, MEASURES))}, not {shown(measure)}"
                        f"{nearest(str(measure)[:60], MEASURES)}")
    if not isinstance(grids, list) or not grids or not all(isinstance(grid, Mapping) for grid in grids):
        problems.append("a sweep must have at least one table [[grid]], with an experiment and lists to combine")
        grids = []
    spaces, wrong = _spaces(grids, folder)
    problems += wrong
    if not problems:
        problems = _unknown(search, spaces) if search else _whole(spaces)
    if problems:
        raise Refusal(listed([f"{source}: {problem}" for problem in problems]))
    return Sweep(name, source, measure, spaces, search)


def _spaces(grids: list[Mapping[str, Any]], folder: Path) -> tuple[tuple[Space, ...], list[str]]:
    """The spaces of all tables ``[[grid]]``, and what is wrong with these, each problem once with their numbers."""
    spaces: list[Space] = []
    found: dict[str, list[int]] = {}
    for number, grid in enumerate(grids, start=1):
        space, wrong = read_space(grid, folder)
        if space:
            spaces.append(space)
        for problem in wrong:
            found.setdefault(problem, []).append(number)
    return tuple(spaces), [f"[[grid]] {some(map(str, numbers))}: {problem}" for problem, numbers in found.items()]


def _whole(spaces: tuple[Space, ...]) -> list[str]:
    """Problems of spaces of which every point is evaluated."""
    if (size := sum(space.size for space in spaces)) > MOST:
        return [f'a sweep without a search must have at most {MOST:,} points, but the grids make {size:,}; give '
                'shorter lists, or search = "tpe"']
    points = [point for space in spaces for point in space.points]
    seen = set[tuple[str, str]]()
    twice = dict[str, None]()
    for point in points:
        if (mine := (point.label, str(point.experiment.tables()))) in seen:
            twice[repr(point.label)] = None
        seen.add(mine)
    return [f"every point must be there once, but grids of the name {', '.join(sorted(twice))} share some; give each "
            "grid lists or a name of its own"] if twice else []


def _unknown(search: Search, spaces: tuple[Space, ...]) -> list[str]:
    """Problems of a search in these spaces."""
    labels = [space.label for space in spaces]
    problems = [f"each grid of a search must have a name of its own, but {label!r} names several"
                for label in dict.fromkeys(labels) if labels.count(label) > 1]
    for space in spaces:
        if not space.axes:
            problems.append(f"a search must have something to vary, but the grid {space.label!r} has no list of values")
        if any(axis.key == "seed" for axis in space.axes):
            problems.append(f"a search must not choose a seed, which would be luck, but the grid {space.label!r} lists "
                            'some; give set = ["training.seed=N"], or leave out the search')
        given = {"board.device": space.experiment.board.device, "hardware.library": space.experiment.hardware.library}
        problems += [f"{FIGURES[name].words} are known where there is a {needed.split('.')[1]}, but the experiment of "
                     f"{space.label!r} has none; give set = [\"{needed}=NAME\"]"
                     for name in search.figures if given.get(needed := FIGURES[name].needs) == "none"]
        if space.experiment.hardware.reloadable and "memory_bits" in search.figures:
            problems.append(f"memory_bits are not predicted for a reloadable design, as that of {space.label!r} is; "
                            "take weight_memory_bits")
    return problems


def _find(source: str) -> tuple[str, Path, str]:
    """Name, folder that paths start from, and text of a sweep."""
    if source in shipped():
        return source, Path(), resources.files("circulant").joinpath("sweeps", f"{source}.toml").read_text("utf-8")
    path = Path(source)
    if path.suffix == ".toml" and not path.exists():
        raise Refusal(f"A sweep must be a file that exists, but there is no {source}; give the path of one, or a "
                      f"shipped sweep ({', '.join(shipped())})")
    if not path.is_file():
        raise Refusal(f"A sweep must be a shipped one ({', '.join(shipped())}) or a .toml file, and {source!r} is "
                      f"neither{nearest(source, shipped())}")
    try:
        return path.stem, path.parent, files.read_text(path, experiment.LIMIT)
    except (UnicodeDecodeError, OSError) as error:
        raise Refusal(f"{path} must be TOML in UTF-8, but cannot be read: {files.reason(error)}") from None


