"""The network of an experiment before it is trained: costs follow from shapes, so that they are the trained one's."""
from dataclasses import replace
from typing import Any

import numpy as np

from circulant.experiment import Experiment
from circulant.extras import TRAINING, extras
from circulant.run.quantization import calibration, widths
from circulant.sim.golden.network import Network
from circulant.sim.golden.stages import Stage
from circulant.sim.refusal import Refusal
from circulant.sim.shape.kinds import within
from circulant.training.settings import CompressionSettings

__all__ = ["CALIBRATION", "path_costs", "sized", "untrained"]

CALIBRATION = 64
"""Training samples that formats of an untrained network are fitted to; its costs hardly depend on them."""

SATURATED = {"gru": (10.0,), "rnn": (10.0,), "lstm": (10.0, 2.0, 10.0)}
"""Biases of the first unit's first gates. They take pre-activations and cells as far as a training takes them: a table
of an activation has as many segments as the range that it covers asks for, while all else follows from widths alone."""


def untrained(experiment: Experiment, data: Any = None, *, saturated: bool = True) -> Network:
    """The golden model of the experiment's network before training.

    Parameters:
        data: of the experiment, where they are loaded already.
        saturated: whether formats and tables are as wide as a training makes them, not as the first weights ask for.

    Raises:
        Refusal: as `circulant.training.load_data`, `build`, `compress` and `quantize`.
    """
    with extras("The network of an experiment that was not quantized", *TRAINING):
        from circulant import training
        from circulant.sim.quantize.quantize import calibrate, quantize

    tables = experiment.tables()
    data = data or training.load_data(**tables["data"])
    model = training.ModelSettings(**tables["model"])
    built = training.build(model, data.shape, data.classes)
    _normalise(built)
    sizes = training.assign(built, tables["compression"]["block_size"], model.dense)
    reference = training.reference(training.compress(built, sizes), data.train_x[:2], name=experiment.name)
    for layer in reference.layers:
        if saturated and layer.kind in SATURATED:
            biases = SATURATED[layer.kind]
            layer.bias_ih[:len(biases), 0] = biases
    return quantize(reference, calibrate(reference, *calibration(data, CALIBRATION)),
                    **widths(tables["quantization"]).as_dict())


def _normalise(model: Any) -> None:
    """Give every batch normalisation variances that differ from channel to channel, as a training does.

    Behind circulant blocks it is then a layer of its own; one that leaves a block as it is would vanish.
    """
    for module in model.modules():
        if getattr(module, "running_var", None) is not None:
            variances = module.running_var.numpy()
            variances[:] = np.linspace(0.5, 1.5, len(variances))


def path_costs(experiment: Experiment, network_of: Any = untrained) -> dict[str, dict[int, float]] | None:
    """The cost of each module by block size, for training.method = "search"; None where it follows from the shapes
    alone, or the method is another one.

    Cycles are those that the exact cost model gives a layer with all of the experiment's multipliers, as if it were
    the only one.

    Parameters:
        network_of: makes the untrained network of an experiment.

    Raises:
        Refusal: where a module's matrices lie in no layer of its name.
    """
    if experiment.training.method != "search" or experiment.training.search_cost == "weight_bits":
        return None
    with extras("circulant train", *TRAINING):
        from circulant import training
        from circulant.training.blocks.matrices import owner
        from circulant.training.blocks.paths import numbers

    tables = experiment.tables(("data", "model"))
    data, model = training.load_data(**tables["data"]), training.ModelSettings(**tables["model"])
    built = training.build(model, data.shape, data.classes)
    fits = numbers(built)
    dense = {owner(name) for name, k in training.assign(built, experiment.compression.block_size, model.dense).items()
             if k == 1}
    found: dict[str, dict[int, float]] = {module: {} for module in fits if module not in dense}
    for k in sorted({k for module in found for k in fits[module]}):
        sizes = {module: k for module in found if k in fits[module]}
        cycles = _alone(experiment, network_of(sized(experiment, sizes)))
        for module in sizes:
            its = [taken for name, taken in cycles.items() if name == module or name.startswith(f"{module}_l")]
            if not its:
                raise Refusal(f"A search for cycles must find the layer of each matrix, but {module!r} has none of its "
                              f"name among {', '.join(cycles)}; take training.search_cost = 'weight_bits'")
            found[module][k] = sum(its)
    return found


def sized(experiment: Experiment, block_size: int | dict[str, int]) -> Experiment:
    """The experiment with other block sizes."""
    return replace(experiment, compression=CompressionSettings(block_size))


def _alone(experiment: Experiment, network: Network) -> dict[str, float]:
    """The cycles of each layer by its name, those of residual sums one by one, with all multipliers."""
    with extras("circulant train"):
        from circulant.hw.planner import ladder  # Not from `passes`: here the kinds of layers have theirs.
        from circulant.run.sizing import budget, levels

    multipliers, found = budget(experiment, network), dict[str, float]()

    def visit(layer: Stage, pixels: int) -> None:
        if layer.kind == "residual":
            for each in within(layer):
                visit(each, pixels)
            return
        made = ladder(layer, streams=1, count=pixels, levels=levels(experiment))
        of = [sum(int(plan.multipliers) for plan in rung) for rung in made.rungs]
        at = max((n for n, count in enumerate(of) if count <= multipliers), default=0)
        found[layer.name] = made.settle(made.rungs[at], max(0, multipliers - of[at])).cycles

    for layer, flow in zip(network.stages, network.arrangement.come, strict=True):
        visit(layer, flow.pixels)
    return found
