"""Networks to estimate: that of a run folder, or that of an experiment before any training."""
import hashlib
import json
import shutil
from pathlib import Path

from circulant import __version__
from circulant.experiment import Experiment
from circulant.run import untrained as run
from circulant.sim.files.cache import store
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal

__all__ = ["network_of", "untrained"]


def network_of(folder: Path) -> Network | None:
    """The golden network of a run folder; None where it was not quantized.

    Raises:
        Refusal: when its files are damaged.
    """
    return Network.load(folder) if (folder / "network.json").exists() else None


def untrained(experiment: Experiment) -> Network:
    """The network of an experiment as `circulant.run.untrained.untrained` makes it.

    torch builds it, which takes seconds, and the cache keeps it: a second call takes none of them.

    Raises:
        Refusal: as that, or when torch is not installed.
    """
    tables = experiment.identity(("data", "model", "compression", "quantization"))
    text = json.dumps([__version__, run.SATURATED, tables], sort_keys=True, default=str)
    folder = store("networks") / hashlib.sha256(text.encode()).hexdigest()
    try:
        return Network.load(folder)
    except (Refusal, OSError):
        shutil.rmtree(folder, ignore_errors=True)
    made = run.untrained(experiment)
    folder.mkdir(parents=True, exist_ok=True)
    made.save(folder)
    return made
