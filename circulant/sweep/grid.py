"""Sweep files: TOML that is read into points, each an experiment of its own.

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
"""
import itertools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from circulant.experiment import LIMIT, Experiment, Hardware, Quantization, load
from circulant.experiment import shipped as experiments
from circulant.sim.files import files
from circulant.sim.refusal import Refusal, nearest
from circulant.sim.settings import keys, title
from circulant.training.settings import CompressionSettings

__all__ = ["AXES", "MEASURES", "Point", "Sweep", "plain", "read", "shipped"]

AXES = {"block_size": CompressionSettings, "weight_bits": Quantization, "activation_bits": Quantization,
        "multipliers": Hardware}
"""Keys that a grid varies, and the table of the experiment that has it. What a grid leaves out stays as it is."""

MEASURES = {"plan": "the exact prediction", "verilog": "multipliers and memory counted in the generated Verilog",
            "simulate": "cycles measured under Verilator, every output bit compared with the golden model"}
"""Where the figures of the hardware come from; each is slower than the one before."""

KEYS = ("experiment", "name", "set", *AXES)


@dataclass(frozen=True)
class Point:
    """One combination.

    Parameters:
        label: the name of its grid.
        experiment: as it is at this point.
    """

    label: str
    experiment: Experiment

    @property
    def block_size(self) -> str:
        """In words: "8", or "gru=8 linear=4"."""
        return str(plain(self.experiment.compression.block_size))

    @property
    def baseline(self) -> "Point | None":
        """The training of the dense baseline alone; None where the experiment names one."""
        if self.experiment.training.dense:
            return None
        alone = replace(self.experiment.training, method="admm", admm_epochs=0, retrain_epochs=0)
        return Point(f"{self.label}, dense", replace(self.experiment, compression=CompressionSettings(1),
                                                            training=alone))

    @property
    def training(self) -> dict[str, Any]:
        """The tables that its training obeys."""
        return self.experiment.tables(("data", "model", "compression", "training"))

    @property
    def network(self) -> dict[str, Any]:
        """The tables that its golden model obeys."""
        return self.training | self.experiment.tables(("quantization",))


@dataclass(frozen=True)
class Sweep:
    """A sweep file.

    Parameters:
        name: names the folder of its results.
        source: how it was named on the command line.
        measure: one of `MEASURES`.
    """

    name: str
    source: str
    measure: str
    points: tuple[Point, ...]


def plain(value: int | Mapping[str, int]) -> int | str:
    """A number as it is, a table of numbers in words."""
    return " ".join(f"{name}={each}" for name, each in value.items()) if isinstance(value, Mapping) else value


def shipped() -> tuple[str, ...]:
    """Names of the sweeps that come with the package."""
    folder = resources.files("circulant").joinpath("sweeps")
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")))


def read(source: str) -> Sweep:
    """The sweep of a shipped name or a ``.toml`` file.

    Raises:
        Refusal: an unknown sweep, broken TOML, or one line for each thing that is wrong with it.
    """
    name, folder, text = _find(source)
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # Numbers of thousands of digits, and brackets within brackets, too.
        raise Refusal(f"{source} must be TOML: {files.reason(error)}") from None
    name = document.pop("name", name)
    measure, grids = document.pop("measure", "plan"), document.pop("grid", [])
    problems = [f"a sweep has no key {word!r}{nearest(word, ('name', 'measure', 'grid'))}; its keys are name, measure "
                "and the tables [[grid]]" for word in document]
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
        problems.append(f"name must be letters, digits, '_', '-' and '.', as it names a folder, not {name!r}")
    if measure not in MEASURES:
        problems.append(f"measure must be one of {', '.join(map(repr, MEASURES))}, not {measure!r}"
                        f"{nearest(str(measure), MEASURES)}")
    if not isinstance(grids, list) or not grids or not all(isinstance(grid, Mapping) for grid in grids):
        problems.append("a sweep must have at least one table [[grid]], with an experiment and lists to combine")
        grids = []
    points: list[Point] = []
    found: dict[str, list[int]] = {}
    for number, grid in enumerate(grids, start=1):
        made, wrong = _grid(grid, folder)
        points += made
        for problem in wrong:
            found.setdefault(problem, []).append(number)
    problems += [f"[[grid]] {', '.join(map(str, numbers))}: {problem}" for problem, numbers in found.items()]
    twice = sorted({f"{point.label!r}" for at, point in enumerate(points) if point in points[:at]})
    if twice:
        problems.append(f"every point must be there once, but grids of the name {', '.join(twice)} share some; give "
                        "each grid lists or a name of its own")
    if problems:
        raise Refusal("\n".join(f"{source}: {problem}" for problem in problems))
    return Sweep(name, source, measure, tuple(points))


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
        return path.stem, path.parent, files.read_text(path, LIMIT)
    except (UnicodeDecodeError, OSError) as error:
        raise Refusal(f"{path} must be TOML in UTF-8, but cannot be read: {files.reason(error)}") from None


def _grid(grid: Mapping[str, Any], folder: Path) -> tuple[list[Point], list[str]]:
    """The points of a grid, or none and what is wrong with it."""
    problems = [f"there is no key {word!r}{nearest(word, KEYS) or '; the keys are ' + ', '.join(KEYS)}"
                for word in grid if word not in KEYS]
    axes = {name: grid[name] for name in AXES if name in grid}
    for name, values in axes.items():
        problems += _axis(name, values)
    overrides = grid.get("set", [])
    if not isinstance(overrides, list) or not all(isinstance(entry, str) for entry in overrides):
        problems.append(f'set must be a list of strings like "training.seed=1", not {overrides!r}')
        overrides = []
    experiment = None
    try:
        experiment = _experiment(grid.get("experiment"), folder, overrides)
    except Refusal as refusal:
        problems += str(refusal).split("\n")
    if experiment is None or problems:
        return [], problems
    label = grid.get("name", experiment.name)
    if not isinstance(label, str) or not label:
        return [], [f"name must be a string that tells the grid from others, not {label!r}"]
    return [Point(label, _moved(experiment, dict(zip(axes, values, strict=True))))
            for values in itertools.product(*axes.values())], []


def _axis(name: str, values: Any) -> list[str]:
    rule, kind, _ = keys(AXES[name])[name]
    if not isinstance(values, list) or not values:
        return [f"{name} must be a list of values, each {rule.rule(kind)}, not {values!r}"]
    problems = [f"each of {name} must be {rule.rule(kind)}, not {value!r}"
                for value in values if rule.refuses(value, kind)]
    if any(value in values[:at] for at, value in enumerate(values)):
        problems.append(f"{name} must have each value once, not {values!r}")
    return problems


def _experiment(source: Any, folder: Path, overrides: list[str]) -> Experiment:
    if not isinstance(source, str):
        raise Refusal(f"experiment must be a shipped one ({', '.join(experiments())}) or a path, not {source!r}")
    return load(source if source in experiments() else folder / source, overrides)


def _moved(experiment: Experiment, values: Mapping[str, Any]) -> Experiment:
    for name, value in values.items():
        table = title(AXES[name])
        experiment = replace(experiment, **{table: replace(getattr(experiment, table), **{name: value})})
    return experiment
