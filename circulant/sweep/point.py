"""A point of a sweep: an experiment of its own, and what its training and its golden network depend on."""
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from circulant.experiment import Experiment
from circulant.training.settings import CompressionSettings

__all__ = ["Point", "plain"]


def plain(value: int | Mapping[str, int]) -> int | str:
    """A number as it is, a table of numbers in words."""
    return " ".join(f"{name}={each}" for name, each in value.items()) if isinstance(value, Mapping) else value


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
    def training(self) -> Mapping[str, Any]:
        """The tables that its training obeys."""
        return self.experiment.tables(("data", "model", "compression", "training"))

    @property
    def network(self) -> Mapping[str, Any]:
        """The tables that its golden model obeys."""
        return {**self.training, **self.experiment.tables(("quantization",))}
