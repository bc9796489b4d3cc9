"""The models that an experiment names, shipped ones and those of a user's file."""
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import NamedTuple

import torch
from torch import nn

from circulant.sim.document import Document
from circulant.sim.refusal import Refusal
from circulant.training.models import python
from circulant.training.models.causal import BODIES, StepsClassifier, StepsLabeller
from circulant.training.models.sequences import KeywordCrnn, SequenceClassifier, SequenceLabeller
from circulant.training.models.vision import LeNet5, ResNet8, cnn, funnel, lenet_caffe, mlp, separable, vgg
from circulant.training.settings.model import ModelSettings

__all__ = ["MODELS", "ModelSettings", "SequenceClassifier", "build", "described"]

def described(settings: ModelSettings) -> Document:
    """The settings as a dictionary; of a user's file, what it holds stands for where it lies."""
    return asdict(settings) | ({"path": python.identity(settings)} if settings.kind == "python" else {})


def build(settings: ModelSettings, inputs: int | Sequence[int], classes: int, *, seed: int = 0) -> nn.Module:
    """The model of the settings, initialised from the seed; the global random state is left as it was.

    Parameters:
        inputs: features of a step, or the shape of a sample: (T, F), (F,) or (C, H, W).

    Raises:
        Refusal: when the model needs images and the samples are none, or are too small.
    """
    if settings.kind == "saved":
        raise Refusal("model.kind = 'saved' must stand in a run folder that keeps its network, as circulant.save_run "
                      "makes it, and such a network is not trained again; name another kind")
    shape = (inputs,) if isinstance(inputs, int) else tuple(inputs)
    kind = MODELS[settings.kind]
    if kind.images and len(shape) != 3:
        raise Refusal(f"A model {settings.kind!r} must have images (channels, height, width), not samples of shape "
                      f"{shape}; choose a data set of images, or another model")
    if not kind.images and settings.kind not in ("mlp", "python") and len(shape) > 2:
        raise Refusal(f"A model {settings.kind!r} must have sequences (T, features), not samples of shape {shape}; "
                      "choose a data set of sequences, or another model")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return kind.make(settings, shape, classes)


class _Kind(NamedTuple):
    """How a model is made of (settings, shape of a sample, classes), and whether it needs images."""

    make: Callable[[ModelSettings, tuple[int, ...], int], nn.Module]
    images: bool = False


def _classifier(settings: ModelSettings, shape: tuple[int, ...], classes: int) -> nn.Module:
    return SequenceClassifier(shape[-1], settings.hidden, classes, cell=settings.kind, layers=settings.layers,
                              projection=settings.projection, peephole=settings.peephole,
                              bidirectional=settings.bidirectional, dropout=settings.dropout)


def _of_steps(settings: ModelSettings, shape: tuple[int, ...], classes: int) -> nn.Module:
    return StepsClassifier(settings.kind, shape[-1], settings.hidden, classes, settings.layers)


def _labeller(settings: ModelSettings, shape: tuple[int, ...], classes: int) -> nn.Module:
    if settings.cell in BODIES:
        return StepsLabeller(settings.cell, shape[-1], settings.hidden, classes, settings.layers, front=settings.front)
    return SequenceLabeller(shape[-1], settings.hidden, classes, cell=settings.cell, layers=settings.layers,
                            projection=settings.projection, peephole=settings.peephole,
                            bidirectional=settings.bidirectional, dropout=settings.dropout, front=settings.front)


def _crnn(settings: ModelSettings, shape: tuple[int, ...], classes: int) -> nn.Module:
    return KeywordCrnn(shape[-1], settings.hidden, classes, width=settings.width or 16, cell=settings.cell,
                       layers=settings.layers, projection=settings.projection, peephole=settings.peephole,
                       bidirectional=settings.bidirectional, dropout=settings.dropout)


def _cnn(settings: ModelSettings, shape: tuple[int, ...], classes: int) -> nn.Module:
    if settings.widths:
        return funnel(shape, classes, settings.widths)
    return cnn(shape, classes, width=settings.width or 32)


MODELS: dict[str, _Kind] = {
    "gru": _Kind(_classifier),
    "lstm": _Kind(_classifier),
    "reset_gru": _Kind(_classifier),
    **dict.fromkeys(BODIES, _Kind(_of_steps)),
    "labeller": _Kind(_labeller),
    "crnn": _Kind(_crnn),
    "mlp": _Kind(lambda s, shape, classes: mlp(shape, s.widths or [s.hidden] * s.layers, classes)),
    "lenet5": _Kind(lambda s, shape, classes: LeNet5(shape, classes, width=s.width or 6, window=s.window or 5), True),
    "lenet_caffe": _Kind(lambda s, shape, classes: lenet_caffe(shape, classes), True),
    "cnn": _Kind(_cnn, True),
    "vgg": _Kind(lambda s, shape, classes: vgg(shape, classes, width=s.width or 32), True),
    "separable": _Kind(lambda s, shape, classes: separable(shape, classes, width=s.width or 32), True),
    "python": _Kind(lambda s, shape, classes: python.made(s)),
    "resnet8": _Kind(lambda s, shape, classes: ResNet8(shape, classes, width=s.width or 16), True),
}
"""Models by kind."""
