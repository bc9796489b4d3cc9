"""What docs/results.md is made of: rows of shipped experiments, each trained with several seeds."""
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["EXPERIMENTS", "FOLDER", "Row", "rows"]

FOLDER = Path("runs/results")

EXPERIMENTS = ("mnist-mlp", "mnist-lenet5", "cifar10-cnn", "fsdd-gru", "fsdd-lstm", "speech-gru", "speech-lstm")

START = ("compression.block_size=1", "training.method=admm", "training.admm_epochs=0", "training.retrain_epochs=0")


@dataclass(frozen=True)
class Row:
    """One model of one experiment.

    Parameters:
        label: names the row, and with the seed its run folder.
        sets: keys of the experiment that it changes.
        base: label of the row whose dense baseline it starts from, with the same seed; empty: it trains its own.
    """

    experiment: str
    label: str
    sets: tuple[str, ...] = ()
    base: str = "start"
    seeds: tuple[int, ...] = (0, 1, 2)

    def folder(self, seed: int, below: Path = FOLDER) -> Path:
        """Its run folder."""
        return below / self.experiment / f"{self.label}-s{seed}"

    def command(self, seed: int, below: Path = FOLDER) -> list[str]:
        """The arguments of ``circulant`` that train it."""
        sets = [*self.sets, f"training.seed={seed}"]
        if self.base:
            sets.append(f'training.dense="{below / self.experiment / f"{self.base}-s{seed}"}"')
        return ["train", self.experiment, "--out", str(self.folder(seed, below)),
                *(word for each in sets for word in ("--set", each))]


def rows(experiment: str) -> Iterator[Row]:
    """The rows of an experiment, that of the dense baseline, which the others start from, first.

    "dense" has k = 1 and goes through the same phases, so that it has the same epochs and the same courses of the
    learning rate as the rows of ADMM. Direct training has the epochs of the baseline, in one course as it.
    """
    yield Row(experiment, "start", START, base="")
    if not experiment.startswith("mnist"):
        yield Row(experiment, "dense", ("compression.block_size=1",))
    if experiment == "mnist-lenet5":
        yield Row(experiment, "circulant")
        return
    sizes = {"mnist-mlp": (16, 64), "cifar10-cnn": (8,), "fsdd-gru": (8, 16), "fsdd-lstm": (8, 16)}
    for k in sizes.get(experiment, (4, 8, 16)):
        yield Row(experiment, f"k{k}", (f"compression.block_size={k}",))
    if experiment.startswith("speech"):
        for label, (first, second) in {"k4-16": (4, 16), "k16-4": (16, 4)}.items():
            yield Row(experiment, label, (f"compression.block_size={_layers(experiment, first, second)}",))


def _layers(experiment: str, first: int, second: int) -> str:
    """A block size for each of two recurrent layers, as TOML."""
    cell = experiment.removeprefix("speech-")
    names = ("weight_ih", "weight_hh", *(("weight_hr",) if cell == "lstm" else ()))
    sizes = {f"{cell}.{name}_l{layer}": k for layer, k in enumerate((first, second)) for name in names}
    return "{" + ", ".join(f"{json.dumps(name)} = {k}" for name, k in sizes.items()) + "}"
