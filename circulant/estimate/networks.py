"""Networks to estimate: that of a run folder, or that of an experiment before any training."""
import hashlib
import json
import shutil
from pathlib import Path

from circulant import __version__
from circulant.experiment import Experiment
from circulant.extras import TRAINING, extras
from circulant.sim.files.cache import store
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal

__all__ = ["network_of", "untrained"]

SAMPLES = 8
"""Samples of the data that the formats of an untrained network are fitted to."""

SATURATED = {"gru": (10.0,), "rnn": (10.0,), "lstm": (10.0, 2.0, 10.0)}
"""Biases of the first unit's first gates. They take pre-activations and cells as far as a training takes them: a table
of an activation has as many segments as the range that it covers asks for, while all else follows from widths alone."""


def network_of(folder: Path) -> Network | None:
    """The golden network of a run folder; None where it was not quantized.

    Raises:
        Refusal: when its files are damaged.
    """
    return Network.load(folder) if (folder / "network.json").exists() else None


def untrained(experiment: Experiment) -> Network:
    """The network of an experiment with the weights that a training would start from.

    torch builds it, which takes seconds, and the cache keeps it: a second call takes none of them.

    Raises:
        Refusal: as `circulant.training.load_data`, `build` and `compress`, or when torch is not installed.
    """
    tables = experiment.identity(("data", "model", "compression", "quantization"))
    key = hashlib.sha256(json.dumps([__version__, SATURATED, tables], sort_keys=True, default=str).encode()).hexdigest()
    folder = store("networks") / key
    try:
        return Network.load(folder)
    except (Refusal, OSError):
        shutil.rmtree(folder, ignore_errors=True)
    made = _made(experiment)
    folder.mkdir(parents=True, exist_ok=True)
    made.save(folder)
    return made


def _made(experiment: Experiment) -> Network:
    with extras("circulant estimate of an experiment that was not quantized", *TRAINING):
        from circulant import training
        from circulant.run.quantization import widths
        from circulant.sim.quantize.quantize import quantize
        from circulant.sim.shape.kinds import leaves

    tables = experiment.tables(("data", "model", "compression", "quantization"))
    data = training.load_data(**tables["data"])
    settings = training.ModelSettings(**tables["model"])
    model = training.build(settings, data.shape, data.classes)
    sizes = training.assign(model, tables["compression"]["block_size"], settings.dense)
    model = training.compress(model, sizes).eval()
    few = data.train_x[:SAMPLES]
    lengths = None if data.train_lengths is None else data.train_lengths[:SAMPLES]
    real = training.reference(model, few, name=experiment.name)
    for layer in leaves(real.layers):
        if layer.kind in SATURATED:
            biases = SATURATED[layer.kind]
            layer.bias_ih[:len(biases), 0] = biases
    return quantize(real, few, lengths=lengths, **widths(tables["quantization"]).as_dict())
