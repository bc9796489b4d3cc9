"""Data sets by name, with the options of an experiment's ``[data]`` table."""
from collections.abc import Callable
from typing import Any

from circulant.sim.public import public
from circulant.sim.refusal import Refusal, nearest
from circulant.training.data import images, npz, python, saved, speech, timit
from circulant.training.data.dataset import BLANK, Dataset
from circulant.training.data.files import Progress, silent
from circulant.training.settings.data import DataSettings

__all__ = ["BLANK", "DATASETS", "Dataset", "Progress", "load_data"]

DATASETS: dict[str, Callable[[DataSettings, Progress], Dataset]] = {
    "digits": images.digits, "mnist": images.mnist, "cifar10": images.cifar10,
    "fsdd": speech.fsdd, "speechocean762": speech.speechocean762, "timit": timit.timit,
    "npz": npz.npz, "python": python.python, "saved": saved.refuse,
}
"""Loaders by name."""


@public(more=DataSettings)
def load_data(name: str, *, progress: Progress | None = None, **options: Any) -> Dataset:
    """The data set called ``name``, with the given options; the same files and options always give the same bits.

    Parameters:
        progress: called while something slow is done.
        options: keys of `DataSettings`, of which each data set takes the ones that docs/data.md lists.

    Raises:
        Refusal: when no data set has this name, an option is unknown, out of range or of no use to it, or its files are
            missing or wrong.
    """
    if name not in DATASETS:
        raise Refusal(f"A data set must be one of {', '.join(map(repr, DATASETS))}, not {name!r}"
                      f"{nearest(name, DATASETS)}")
    return DATASETS[name](DataSettings(name, **options), progress or silent)
