"""The models that an experiment names, and what it may say of each."""
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import torch
from torch import nn

from circulant.sim.refusal import Refusal, nearest
from circulant.training.models.sequences import CELLS, KeywordCrnn, SequenceClassifier, SequenceLabeller
from circulant.training.models.vision import LeNet5, ResNet8, cnn, funnel, lenet_caffe, mlp, vgg

__all__ = ["MODELS", "ModelSettings", "SequenceClassifier", "build"]

RECURRENT = ("hidden", "layers", "bidirectional", "dropout")
PROJECTED = ("projection", "peephole")


@dataclass(frozen=True)
class ModelSettings:
    """Model settings of an experiment.

    Parameters:
        kind: one of `MODELS`.
        hidden: hidden units of a recurrent layer, or of each hidden layer of an mlp.
        layers: recurrent layers, or hidden layers of an mlp.
        widths: units of each hidden layer of an mlp, in place of ``hidden`` and ``layers``; channels of each
            convolution of a cnn with a maximum behind all but the last, in place of ``width``.
        cell: "gru", "lstm" or "reset_gru" in a labeller or crnn; other kinds name theirs.
        projection: outputs of an lstm with a projection; 0 for none.
        peephole: whether an lstm has peepholes.
        bidirectional: whether recurrent layers go both ways.
        dropout: part of the values between two recurrent layers that is dropped in training.
        front: outputs of a Linear in front of the recurrent layers of a labeller, at each step; 0 for none.
        width: channels of the first convolution; 0 for the model's own number.
        window: side of the windows of lenet5's first convolution, odd; 0 for 5.
        dense: matrices that stay dense, by name of module or parameter, or "first" and "last".

    Raises:
        Refusal: when the kind is unknown, a number is out of range, or an option is set that the kind does not have.
    """

    kind: str = "gru"
    hidden: int = 64
    layers: int = 1
    widths: tuple[int, ...] = ()
    cell: str = "gru"
    projection: int = 0
    peephole: bool = False
    bidirectional: bool = False
    dropout: float = 0.0
    front: int = 0
    width: int = 0
    window: int = 0
    dense: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in MODELS:
            raise Refusal(f"A model must be one of {', '.join(map(repr, MODELS))}, not {self.kind!r}"
                          f"{nearest(str(self.kind), MODELS)}")
        for name, least in (("hidden", 1), ("layers", 1), ("projection", 0), ("front", 0), ("width", 0),
                            ("window", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                rule = "a positive integer" if least else "an integer of at least 0"
                raise Refusal(f"Field {name!r} of a model must be {rule}, not {value!r}; choose {least} or more")
        if not isinstance(self.dropout, int | float) or not 0 <= self.dropout < 1:
            raise Refusal(f"Field 'dropout' of a model must be from 0 to below 1, not {self.dropout!r}; choose 0 for "
                          "none")
        object.__setattr__(self, "dense", tuple(self.dense))
        object.__setattr__(self, "widths", tuple(self.widths))
        if any(type(width) is not int or width < 1 for width in self.widths):
            raise Refusal(f"Field 'widths' of a model must be positive integers, not {self.widths!r}; choose others")
        taken = ("kind", "dense", *MODELS[self.kind].options)
        ignored = [f"{field.name} = {getattr(self, field.name)!r}" for field in fields(self)
                   if field.name not in taken and getattr(self, field.name) != field.default]
        if ignored:
            raise Refusal(f"A model {self.kind!r} must be given the options {', '.join(taken)}, not "
                          f"{', '.join(ignored)}; leave them out")
        if self.width and self.widths:
            raise Refusal(f"A model {self.kind!r} must be given width or widths, not both {self.width} and "
                          f"{self.widths}; leave one out")
        if self.window and not self.window % 2:
            raise Refusal(f"A window must have an odd side, so that the image keeps its size, not {self.window}; "
                          f"choose {self.window - 1} or {self.window + 1}")
        if self.cell not in CELLS:
            raise Refusal(f"A cell must be one of {', '.join(map(repr, CELLS))}, not {self.cell!r}"
                          f"{nearest(str(self.cell), CELLS)}")
        if self.kind != "lstm" and self.cell != "lstm" and (self.projection or self.peephole):
            raise Refusal(f"Peepholes and a projection must be asked of cell 'lstm', not of {self.cell!r}; leave them "
                          "out")
        if self.projection >= self.hidden:
            raise Refusal(f"A projection must be below the {self.hidden} hidden units, not {self.projection}; choose 0 "
                          "for none")


def build(settings: ModelSettings, inputs: int | Sequence[int], classes: int, *, seed: int = 0) -> nn.Module:
    """The model of the settings, initialised from the seed; the global random state is left as it was.

    Parameters:
        inputs: features of a step, or the shape of a sample: (T, F), (F,) or (C, H, W).

    Raises:
        Refusal: when the model needs images and the samples are none, or are too small.
    """
    shape = (inputs,) if isinstance(inputs, int) else tuple(inputs)
    kind = MODELS[settings.kind]
    if kind.images and len(shape) != 3:
        raise Refusal(f"A model {settings.kind!r} must have images (channels, height, width), not samples of shape "
                      f"{shape}; choose a data set of images, or another model")
    if not kind.images and settings.kind != "mlp" and len(shape) > 2:
        raise Refusal(f"A model {settings.kind!r} must have sequences (T, features), not samples of shape {shape}; "
                      "choose a data set of sequences, or another model")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return kind.make(settings, shape, classes)


class _Kind(NamedTuple):
    """How a model is made of (settings, shape of a sample, classes), which options it has, whether it needs images."""

    make: Callable[[ModelSettings, tuple[int, ...], int], nn.Module]
    options: tuple[str, ...]
    images: bool = False


def _classifier(settings: ModelSettings, shape: tuple[int, ...], classes: int) -> nn.Module:
    return SequenceClassifier(shape[-1], settings.hidden, classes, cell=settings.kind, layers=settings.layers,
                              projection=settings.projection, peephole=settings.peephole,
                              bidirectional=settings.bidirectional, dropout=settings.dropout)


def _labeller(settings: ModelSettings, shape: tuple[int, ...], classes: int) -> nn.Module:
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
    "gru": _Kind(_classifier, RECURRENT),
    "lstm": _Kind(_classifier, (*RECURRENT, *PROJECTED)),
    "reset_gru": _Kind(_classifier, RECURRENT),
    "labeller": _Kind(_labeller, ("cell", *RECURRENT, *PROJECTED, "front")),
    "crnn": _Kind(_crnn, ("cell", *RECURRENT, *PROJECTED, "width")),
    "mlp": _Kind(lambda s, shape, classes: mlp(shape, s.widths or [s.hidden] * s.layers, classes),
                 ("hidden", "layers", "widths")),
    "lenet5": _Kind(lambda s, shape, classes: LeNet5(shape, classes, width=s.width or 6, window=s.window or 5),
                    ("width", "window"), True),
    "lenet_caffe": _Kind(lambda s, shape, classes: lenet_caffe(shape, classes), (), True),
    "cnn": _Kind(_cnn, ("width", "widths"), True),
    "vgg": _Kind(lambda s, shape, classes: vgg(shape, classes, width=s.width or 32), ("width",), True),
    "resnet8": _Kind(lambda s, shape, classes: ResNet8(shape, classes, width=s.width or 16), ("width",), True),
}
"""Models by kind."""
