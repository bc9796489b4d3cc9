"""Settings of the data: one table of options, of which each data set takes those that mean something."""
from dataclasses import dataclass
from typing import Any

from circulant.sim.settings import Table, key

__all__ = ["ALWAYS", "OPTIONS", "DataSettings"]

ALWAYS = ("seed", "subset", "test_subset", "held_out")
"""Options that every data set takes."""

OPTIONS: dict[str, tuple[str, ...]] = {
    "digits": ("layout", "normalise"),
    "mnist": ("path", "layout", "normalise"),
    "cifar10": ("path", "layout", "normalise"),
    "fsdd": ("path", "longest", "steps", "bands", "deltas", "normalise", "stack"),
    "speechocean762": ("path", "longest", "deltas", "normalise", "stack"),
    "timit": ("path", "longest", "bands", "deltas", "normalise", "stack", "phones"),
    "npz": ("path",),
    "python": ("path", "arguments"),
    "saved": (),
}
"""Further options of each data set."""


@dataclass(frozen=True)
class DataSettings(Table):
    """Data that the network learns. Each data set takes some of these options and refuses the others; see data.md."""

    name: str = key("digits", "data set", choices=tuple(OPTIONS))
    path: str = key("", "file or folder of the data set, relative to the folder of the experiment file; empty: below "
                    "CIRCULANT_DATA. With name = 'python', a file and a function in it: 'data.py:load'")
    arguments: dict[str, Any] = key({}, "arguments of that function, by name")
    seed: int = key(0, "seed of the split, if the data set has none of its own, and of a subset", low=0, high=2**31 - 1)
    subset: int = key(0, "training samples to keep, in equal shares of all classes", low=1, high=10**9, zero="all")
    test_subset: int = key(0, "test samples to keep, in equal shares of all classes", low=1, high=10**9, zero="all")
    held_out: int = key(0, "training samples that replace the test set, so that settings can be chosen without it",
                        low=1, high=10**9, zero="none")
    layout: str = key("auto", "images as (C, H, W), as vectors, or as sequences of rows",
                      choices=("auto", "image", "flat", "rows"))
    longest: int = key(0, "training sequences with more steps are left out", low=1, high=10**6, zero="no bound")
    steps: int = key(0, "length to which sequences are cut, or padded with zeros in front",
                     low=1, high=10**6, zero="as they are")
    bands: int = key(0, "mel bands per step", low=1, high=256, zero="the data set's own number")
    deltas: str = key("auto", "time derivatives in addition to the bands: Δ, or Δ and ΔΔ",
                      choices=("auto", "none", "first", "second"))
    normalise: str = key("auto", "normalise each feature or channel to mean 0 and variance 1, over each sample or "
                         "over the training set", choices=("auto", "none", "sample", "train"))
    stack: int = key(1, "successive frames that form one step", low=1, high=64)
    phones: int = key(39, "number of phones to which TIMIT's 61 are mapped", choices=(39, 48, 61))

    def contradictions(self) -> list[str]:
        taken = (*ALWAYS, *OPTIONS[self.name])
        ignored = self.besides("name", *taken)
        return [f"The data set {self.name!r} takes the options {', '.join(taken)}, not {', '.join(ignored)}; leave "
                "them out"] if ignored else []
