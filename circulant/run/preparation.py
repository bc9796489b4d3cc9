"""Preparation of a training before it starts: a look at its network, and a dense baseline of another run."""
from pathlib import Path
from typing import Any

from circulant.boards.device import device, fits
from circulant.experiment import Experiment, load
from circulant.extras import extras
from circulant.run.divided import found
from circulant.run.sizing import budget, family, latency, levels
from circulant.run.untrained import untrained
from circulant.sim.refusal import Refusal

__all__ = ["baseline", "inspected", "require_design", "require_one_size"]

WHOLE = ("crnn", "mlp")
"""Models whose circuit takes samples of one size, as an image or a vector."""

WEIGHTLESS = (("model", "dense"), ("model", "dropout"))
"""Keys that do not decide which weights a model has."""


def inspected(experiment: Experiment, data: Any) -> Any:
    """The `circulant.training.ConversionReport` of an experiment's network with its block sizes, untrained.

    Raises:
        Refusal: as `circulant.training.build` and `compress`.
    """
    from circulant import training

    tables = experiment.tables(("model", "compression"))
    model = training.ModelSettings(**tables["model"])
    network = training.build(model, data.shape, data.classes)
    if model.kind == "python":
        from circulant.training.trial import require_fit

        require_fit(model, network, data)
    sizes = training.assign(network, tables["compression"]["block_size"], model.dense)
    return training.inspect(training.compress(network, sizes), data.train_x[:2])


def require_one_size(experiment: Experiment, data: Any) -> None:
    """Check that samples have one size where the circuit will.

    Raises:
        Refusal: when they are sequences of different lengths.
    """
    if experiment.model.kind in WHOLE and data.train_lengths is not None:
        raise Refusal(f"Sequences must have one length for model.kind = {experiment.model.kind!r}, whose circuit takes "
                      f"samples of one size, but those of {data.name!r} have different ones; cut and pad them to one "
                      "length (data.steps of fsdd), or choose a 'gru'")


def require_design(experiment: Experiment, data: Any) -> None:
    """Check that the multipliers suffice for the network, which is not trained yet, and that it may fit the device:
    with tables as short as its first weights ask for, and if its logic is estimated too high. What a training or a
    search of the quantization decides (block sizes, widths) is checked when the design is generated.

    Raises:
        Refusal: as `circulant.run.sizing.budget` and `levels`, `circulant.hw.planner.plan` and
            `circulant.boards.device.fits`.
    """
    with extras("circulant run", "amaranth"):
        from circulant.hw.foreseen import foreseen
        from circulant.hw.plan_cache import plans_of
        from circulant.hw.resources import parts

    hardware, name = experiment.hardware, experiment.board.device
    if experiment.training.method == "search":
        return
    network = untrained(experiment, data, saturated=False)
    if hardware.several is not None:
        found(network, hardware.several, levels=levels(experiment), mhz=hardware.clock_mhz or None)
        return
    multipliers = budget(experiment, network)
    network = network.with_argmax() if hardware.argmax else network
    plans = plans_of(network, multipliers, streams=hardware.streams, levels=levels(experiment),
                     objective=hardware.objective, reloadable=hardware.reloadable, packing=hardware.dsp_packing,
                     protection=hardware.protection, beat_blocks=hardware.beat_blocks, latency=latency(experiment),
                     max_steps=hardware.max_steps)
    if name == "none" or experiment.quantization.budget:
        return
    made = parts(network, plans, max_steps=hardware.max_steps, reloadable=hardware.reloadable)
    fits(device(name), foreseen(made, len(network.stages), levels=levels(experiment), profile=family(experiment)))


def baseline(experiment: Experiment, folder: Path) -> Any:
    """State dict of the dense model that a run folder keeps. Its dropout may have been another one.

    It is the trained model where all matrices of that run are dense, as one that was taught, else its dense baseline.

    Raises:
        Refusal: when it holds none, or that of other data or of another network.
    """
    from circulant import training

    tables, kept = (each.identity(("data", "model")) for each in (experiment, load(folder)))
    for table, mine in tables.items():
        for key, value in mine.items():
            if (other := kept[table][key]) != value and (table, key) not in WEIGHTLESS:
                raise Refusal(f"training.dense must be a run of the same data and model, but {folder} has {table}.{key}"
                              f" = {other!r}, not {value!r}; choose another folder, or train one")
    trained = training.load_trained(folder / "model.pt", model=experiment.model)
    return trained.dense if any(k > 1 for k in trained.block_sizes.values()) else trained.model.state_dict()
