"""The number of units of a model: how it is called, and the model with another one."""
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from circulant.experiment import Experiment
from circulant.sim.golden.network import Network
from circulant.training.settings.model import OPTIONS

__all__ = ["given", "multiplications", "resized", "units"]

UNITS = ("hidden", "width")
"""Keys of a model, or arguments of one in Python, that say how large it is."""


def units(experiment: Experiment) -> str | None:
    """The key of the model that makes it smaller; None where there is none."""
    model = experiment.model
    if model.kind == "python":
        return next((name for name in UNITS if isinstance(model.arguments.get(name), int)), None)
    if model.widths:
        return None
    return next((name for name in UNITS if name in OPTIONS[model.kind]), None)


def given(chosen: Experiment, key: str) -> int:
    """The units of an experiment."""
    model = chosen.model
    return int(model.arguments[key] if model.kind == "python" else getattr(model, key))


def resized(experiment: Experiment, key: str, count: int) -> Experiment:
    """The experiment with so many units."""
    model = experiment.model
    smaller: Mapping[str, Any] = {key: count, "projection": min(model.projection, count // 2)}
    if model.kind == "python":
        smaller = {"arguments": {**model.arguments, key: count}}
    return replace(experiment, model=replace(model, **smaller))


def multiplications(network: Network) -> int:
    """Multiplications of a step, or of an image."""
    from circulant.hw.planner import layer_multiplications

    return sum(map(layer_multiplications, network.stages))
