"""The rows of docs/results.md: those of shipped experiments, each trained with several seeds, and what to reach."""
import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from circulant.experiment import load

__all__ = ["EXPERIMENTS", "FOLDER", "TITLES", "Entry", "Row", "Target", "campaign", "rows"]

FOLDER = Path("runs/results")

CAMPAIGN = Path(__file__).with_name("campaign.toml")

TITLES = {
    "fsdd-gru": "Spoken digits (FSDD), GRU 32 → 64 → 10",
    "fsdd-lstm": "Spoken digits (FSDD), LSTM 32 → 64 → 10",
    "mnist-mlp": "MNIST, perceptron 784-1024-512-10",
    "mnist-lenet5": "MNIST, LeNet-5, all but the first and the last layer circulant",
    "mnist-lenet": "MNIST, LeNet-5 as Caffe has it, all but the first and the last layer circulant",
    "mnist-cnn": "MNIST, LeNet-5 for hardware: eight channels of 3 × 3 windows first",
    "cifar10-cnn": "CIFAR-10 (JPEG q75), CNN of four convolutions",
    "cifar10-wide": "CIFAR-10 (JPEG q75), CNN of five convolutions, wide where positions are few",
    "cifar10-resnet8": "CIFAR-10 (JPEG q75), ResNet-8",
    "speech-gru": "Phones of speechocean762, two GRU layers",
    "speech-lstm": "Phones of speechocean762, two LSTM layers with peepholes and projection",
    "speech-gru-720": "Phones of speechocean762, two GRU layers of 720 units",
    "speech-gru-1024": "Phones of speechocean762, two GRU layers of 1,024 units",
    "speech-gru-256": "Phones of speechocean762, two GRU layers of 256 units",
    "speech-lstm-256": "Phones of speechocean762, two LSTM layers of 256 units with peepholes and projection",
}
EXPERIMENTS = tuple(TITLES)

START = ("compression.block_size=1", "training.method=admm", "training.admm_epochs=0", "training.retrain_epochs=0")


TAUGHT = {
    **dict.fromkeys(("speech-gru", "speech-lstm"), ("training.learning_rate=0.004", "model.dropout=0.2")),
    **dict.fromkeys(("speech-gru-720", "speech-gru-1024"), ("training.learning_rate=0.003", "model.dropout=0.2")),
}
"""Settings of speech models that learn from the outputs of the dense one: the block-circulant ones, and its twin."""

WARM = {
    **TAUGHT,
    "speech-gru-256": ("training.distillation=0.9", "training.learning_rate=0.008", "model.dropout=0.2"),
}
"""Settings of speech models that start from the dense one, and learn from its outputs."""

SIZES = {"speech-gru-1024": (8, 32)}
"""Block sizes of those rows, where they are not 8 and 16: blocks of 32 have the weights of 512 units in blocks of 8."""

WARM_IMAGES = {
    "mnist-lenet5": ("training.distillation=0.9", "training.start=dense"),
    "cifar10-cnn": ("training.method=direct", "training.direct_epochs=24", "training.distillation=0.9",
                    "training.start=dense"),
}
"""The same of networks over images."""

WIDER = "model.widths=[32, 64, 256, 512]"
"""Setting of the rows of the narrow CNN's experiment that have more channels and larger blocks: no more multiplications
than the narrow one has with k = 8 and 4."""

GRADED = "compression.block_size={conv2 = 4, conv3 = 8, conv4 = 16}"
"""Setting of a row of it whose blocks grow with the channels: fewer multiplications than k = 8 in all."""

RESNETS = {16: {"k4": (4, 4, 4), "k2-8": (2, 8, 8)}, 24: {"k8-16-width24": (8, 16, 16)}}
"""Block sizes of the three stages of ResNet-8, by its width and the label of the row: with 345 multipliers, 13,000
images/s at 200 MHz and more."""

CHAIN = ("training.precision=float32",)
"""Settings of the rows of a chain: a dense model, its dense twin that learns from it, and block-circulant ones that
start from the twin and learn from it."""

FAST = "training.learning_rate=0.008"
"""Rate of the blocks of a chain that was chosen for 256 units."""

HOWS = ("", "-hints")
"""Endings of the labels of speech models that have one block size: without hints, and with them."""

HINTS = "training.hints=0.9"
"""Setting of rows that learn from what the recurrent layers of the dense model give, too."""

ALONE = ("training.dense_epochs=0", "model.dropout=0.1")
"""Settings of the other speech models: they learn from phones alone."""


@dataclass(frozen=True)
class Target:
    """The goal of a row: a score itself, a loss against the dense model of the same budget, or both.

    Parameters:
        score: an accuracy of at least this, or an error rate below it.
        loss: at most so much is lost, in the metric's own unit.
        fewer: by this factor fewer weights in the Linear layers that are circulant.
        behind: at most so much is lost against the dense model that it learns from.
    """

    score: float | None = None
    loss: float | None = None
    fewer: float | None = None
    behind: float | None = None


TARGETS = {
    ("fsdd-gru", "k8"): Target(score=0.983),
    ("fsdd-gru", "k16"): Target(score=0.975),
    ("mnist-mlp", "k16"): Target(score=0.988, loss=0.0),
    ("mnist-mlp", "k64"): Target(score=0.984),
    ("mnist-lenet5", "circulant"): Target(score=0.99, loss=0.002, fewer=30),
    **{("mnist-lenet5", f"k{k}"): Target(score=0.99, loss=0.002) for k in (4, 8, 16)},
    ("mnist-lenet", "circulant"): Target(score=0.99, loss=0.002, fewer=30),
    ("mnist-cnn", "circulant"): Target(score=0.99),
    ("cifar10-cnn", "dense"): Target(score=0.8),
    ("cifar10-cnn", "k8"): Target(loss=0.007),
    ("cifar10-wide", "start"): Target(score=0.8),
    ("cifar10-wide", "k8"): Target(loss=0.007),
    **{(experiment, label): target for experiment in EXPERIMENTS if experiment.startswith("speech")
       for label, target in (("start", Target(score=0.47)), *((f"k8{how}", Target(loss=0.0015)) for how in HOWS),
                             *((f"k16{how}", Target(loss=0.0035)) for how in HOWS))},
    ("speech-gru", "k8-warm"): Target(loss=0.0015),
    ("speech-gru", "k16-warm"): Target(loss=0.006),
    ("speech-lstm", "k8-warm"): Target(loss=-0.003),
    ("speech-lstm", "k16-warm"): Target(loss=0.0035),
    **{(f"speech-{cell}", f"{k}-chain{fast}"): target for fast in ("", "-fast") for cell, k, target in (
        ("gru", "k8", Target(loss=0.0015, behind=0.01)), ("gru", "k16", Target(loss=0.006)),
        ("lstm", "k8", Target(loss=-0.003, behind=0.01)), ("lstm", "k16", Target(loss=0.0035)))},
    ("speech-gru-256", "k8-warm"): Target(loss=0.015),
    ("mnist-lenet5", "warm"): Target(score=0.99, loss=0.002, fewer=30),
    ("cifar10-cnn", "k8-warm"): Target(loss=0.03),
    ("cifar10-cnn", "k4-warm"): Target(loss=0.015),
    ("cifar10-cnn", "graded-warm"): Target(loss=0.03),
    ("cifar10-cnn", "k16-wider"): Target(loss=0.03),
    ("cifar10-cnn", "k8-wider"): Target(loss=0.015),
    ("cifar10-resnet8", "start"): Target(score=0.84),
    **{("cifar10-resnet8", label): Target(score=0.8) for blocks in RESNETS.values() for label in blocks},
}
"""By experiment and label."""


@dataclass(frozen=True)
class Row:
    """One model of one experiment.

    Parameters:
        label: names the row, and with the seed its run folder.
        sets: keys of the experiment that it changes.
        base: label of the row whose dense model it starts from, with the same seed; empty: it trains its own.
        against: label of the row with whose score its own is compared.
        bound: what it has to reach; None for what `TARGETS` says.
    """

    experiment: str
    label: str
    sets: tuple[str, ...] = ()
    base: str = "start"
    against: str = "start"
    bound: Target | None = None

    @property
    def target(self) -> Target:
        """The bound that it has to reach."""
        return self.bound or TARGETS.get((self.experiment, self.label), Target())

    def folder(self, seed: int, below: Path = FOLDER) -> Path:
        """Its run folder."""
        return below / self.experiment / f"{self.label}-s{seed}"

    def arguments(self, seed: int, below: Path = FOLDER) -> list[str]:
        """The arguments of ``circulant`` that train it."""
        sets = [*self.sets, f"training.seed={seed}"]
        if self.base:
            sets.append(f"training.dense={below / self.experiment / f'{self.base}-s{seed}'}")
        return ["train", self.experiment, "--out", str(self.folder(seed, below)),
                *(word for each in sets for word in ("--set", each))]


def rows(experiment: str) -> Iterator[Row]:
    """The rows of an experiment, that of the dense baseline, which the others start from, first.

    "dense" has k = 1 and goes through the same phases, so that it has the same epochs and the same schedules of the
    learning rate as the rows of ADMM. Direct training has the epochs of the baseline, in one schedule as it.
    """
    yield Row(experiment, "start", START, base="")
    twin = load(experiment).training.method == "admm"
    if twin:
        yield Row(experiment, "dense", ("compression.block_size=1",))
    for row in _others(experiment):
        direct = "training.method=direct" in row.sets  # Whatever the others are.
        yield replace(row, against="dense") if twin and row.base and not direct else row
    yield from (entry.row for entry in campaign() if entry.own and entry.row.experiment == experiment)


class Entry(NamedTuple):
    """A row of a campaign.

    Members:
        why: what it is to find out.
        own: whether the file says its settings, or its label those of a shipped row.
    """

    row: Row
    seeds: tuple[int, ...]
    why: str
    own: bool


@cache
def campaign(path: Path = CAMPAIGN) -> tuple[Entry, ...]:
    """The rows of a campaign, in its order."""
    document = tomllib.loads(path.read_text("utf-8"))
    entries = []
    for given in document["row"]:
        experiment, label, own = given["experiment"], given["label"], "base" in given
        if own:
            sets = (each for name in given.get("sets", ()) for each in document["sets"][name])
            row = Row(experiment, label, (*sets, *given.get("settings", ())), base=given["base"],
                      against=given.get("against", "start"), bound=Target(given.get("score"), given.get("loss")))
        else:
            row = next(row for row in (Row(experiment, "start", START, base=""), *_others(experiment))
                       if row.label == label)
        entries.append(Entry(row, tuple(given["seeds"]), given["why"], own))
    return tuple(entries)


def _others(experiment: str) -> Iterator[Row]:
    """The rows of an experiment behind those that all are compared with."""
    if experiment in ("mnist-lenet5", "mnist-lenet", "mnist-cnn"):
        yield Row(experiment, "circulant")
        for k in (4, 8, 16) if experiment == "mnist-lenet5" else ():
            yield Row(experiment, f"k{k}", (f"compression.block_size={{conv2 = 2, fc1 = {k}, fc2 = {k}}}",))
        if experiment in WARM_IMAGES:
            yield Row(experiment, "warm", WARM_IMAGES[experiment])
        return
    if experiment == "cifar10-resnet8":
        yield from _resnets(experiment)
        return
    if experiment == "speech-gru-720":  # It stands for one width between two others.
        yield Row(experiment, "k16-warm", (*WARM[experiment], "training.start=dense"))
        return
    if experiment.startswith("speech"):
        taught = experiment in TAUGHT
        recipe, base, twin = (TAUGHT[experiment], "start", {"taught": "1"}) if taught else (ALONE, "", {})
        mixed = {"k4-16": _layers(experiment, 4, 16), "k16-4": _layers(experiment, 16, 4)}
        for label, size in (twin | {f"k{k}": str(k) for k in (4, 8, 16)} | mixed).items():
            yield Row(experiment, label, (f"compression.block_size={size}", *recipe), base)
        for k in (8, 16) if taught else ():
            yield Row(experiment, f"k{k}-hints", (f"compression.block_size={k}", *recipe, HINTS), base)
        for k in SIZES.get(experiment, (8, 16)) if experiment in WARM else ():
            yield Row(experiment, f"k{k}-warm",
                      (f"compression.block_size={k}", *WARM[experiment], "training.start=dense"))
        if experiment in ("speech-gru", "speech-lstm"):
            yield from _chain(experiment)
        return
    sizes = {"mnist-mlp": (16, 64), "cifar10-cnn": (8,), "cifar10-wide": (8,), "fsdd-gru": (8, 16),
             "fsdd-lstm": (8, 16)}
    for k in sizes.get(experiment, ()):
        longer = ("training.direct_epochs=40",) if (experiment, k) == ("mnist-mlp", 64) else ()
        yield Row(experiment, f"k{k}", (f"compression.block_size={k}", *longer))
    for k in (8, 4) if experiment in WARM_IMAGES else ():
        yield Row(experiment, f"k{k}-warm", (f"compression.block_size={k}", *WARM_IMAGES[experiment]))
    if experiment == "cifar10-cnn":
        yield Row(experiment, "graded-warm", (GRADED, *WARM_IMAGES[experiment]))
        yield Row(experiment, first := "start-wider", (*START, WIDER), base="")
        for k in (16, 8):
            sets = (WIDER, f"compression.block_size={k}", *WARM_IMAGES[experiment])
            yield Row(experiment, f"k{k}-wider", sets, first)


def _chain(experiment: str) -> Iterator[Row]:
    first, twin = "start-chain", "taught-chain"
    learning = (*TAUGHT[experiment], *CHAIN)
    yield Row(experiment, first, (*START, *CHAIN), base="", against=first)
    yield Row(experiment, twin, ("compression.block_size=1", *learning), first, first)
    for k in (8, 16):
        yield Row(experiment, f"k{k}-chain", (f"compression.block_size={k}", *learning, "training.start=dense"), twin,
                  first)
    for k in (8, 16):
        sets = (f"compression.block_size={k}", *(FAST if each.startswith("training.learning_rate=") else each
                                                 for each in learning), "training.start=dense")
        yield Row(experiment, f"k{k}-chain-fast", sets, twin, first)


def _resnets(experiment: str) -> Iterator[Row]:
    """ResNet-8 of other widths, each from a dense model of its own, and with a block size for each stage."""
    for width, blocks in RESNETS.items():
        first, channels = ("start", ()) if width == 16 else (f"start-width{width}", (f"model.width={width}",))
        if channels:
            yield Row(experiment, first, (*START, *channels), base="")
        for label, sizes in blocks.items():
            stages = ", ".join(f"stage{number} = {k}" for number, k in enumerate(sizes, start=1))
            yield Row(experiment, label, (f"compression.block_size={{{stages}}}", *channels), first, first)


def _layers(experiment: str, first: int, second: int) -> str:
    """A block size for each of two recurrent layers, as TOML."""
    model = load(experiment).model
    names = ("weight_ih", "weight_hh", *(("weight_hr",) if model.projection else ()))
    sizes = {f"{model.cell}.{name}_l{layer}{way}": k for layer, k in enumerate((first, second)) for name in names
             for way in ("", *(("_reverse",) if model.bidirectional else ()))}
    return "{" + ", ".join(f"{json.dumps(name)} = {k}" for name, k in sizes.items()) + "}"
