"""Settings of the model: which network, and how large; each kind takes the options that it has."""
from dataclasses import dataclass
from typing import Any

from circulant.sim.settings import Table, key

__all__ = ["CELLS", "OPTIONS", "STEPS", "ModelSettings"]

CELLS = ("gru", "lstm", "reset_gru")

STEPS = ("tcn", "min_gru", "lru")
"""Layers without a matrix in a recurrence."""

_RECURRENT = ("hidden", "layers", "bidirectional", "dropout")
_PROJECTED = ("projection", "peephole")

OPTIONS: dict[str, tuple[str, ...]] = {
    "gru": _RECURRENT,
    "lstm": (*_RECURRENT, *_PROJECTED),
    "reset_gru": _RECURRENT,
    **dict.fromkeys(STEPS, ("hidden", "layers")),
    "labeller": ("cell", *_RECURRENT, *_PROJECTED, "front"),
    "crnn": ("cell", *_RECURRENT, *_PROJECTED, "width"),
    "mlp": ("hidden", "layers", "widths"),
    "lenet5": ("width", "window"),
    "lenet_caffe": (),
    "cnn": ("width", "widths"),
    "vgg": ("width",),
    "resnet8": ("width",),
    "separable": ("width",),
    "python": ("path", "arguments"),
    "saved": (),
}
"""Options of each kind, besides "kind" and "dense"."""


@dataclass(frozen=True)
class ModelSettings(Table):
    """The network, before compression."""

    kind: str = key("gru", "the network; docs/models.md lists its layers", choices=tuple(OPTIONS))
    hidden: int = key(64, "hidden units of a recurrent layer, channels of a tcn, or units of each hidden layer of an "
                          "mlp", low=1, high=4096)
    layers: int = key(1, "recurrent layers, blocks of a tcn, or hidden layers of an mlp", low=1, high=8)
    widths: tuple[int, ...] = key((), "units of each hidden layer of an mlp, instead of hidden and layers; channels "
                                  "of each convolution of a cnn, instead of width", low=1, high=65536)
    cell: str = key("gru", "recurrent cell of a labeller or crnn; a labeller has tcn, min_gru and lru, too",
                    choices=(*CELLS, *STEPS))
    projection: int = key(0, "outputs of an lstm with a projection", low=1, high=4095, zero="none")
    peephole: bool = key(False, "whether an lstm has peepholes")
    bidirectional: bool = key(False, "whether recurrent layers run in both directions")
    dropout: float = key(0.0, "fraction of the values between two recurrent layers that is dropped in training",
                         low=0, high=0.9)
    front: int = key(0, "outputs of a fully connected layer in front of the recurrent layers of a labeller, at each "
                     "step", low=1, high=4096, zero="none")
    width: int = key(0, "channels of the first convolution", low=1, high=1024, zero="the network's own number")
    window: int = key(0, "side of the kernel of lenet5's first convolution, odd", low=1, high=11, zero="5")
    dense: tuple[str, ...] = key((), "matrices that stay dense, by module or parameter, or 'first' and 'last'")
    path: str = key("", "with kind = 'python': a file and a class or function in it, 'net.py:Net', relative to the "
                    "folder of the experiment file")
    arguments: dict[str, Any] = key({}, "arguments of that class or function, by name")

    def contradictions(self) -> list[str]:
        problems = []
        named, options = repr(self.kind), OPTIONS[self.kind]
        if self.kind == "labeller" and self.cell in STEPS:
            named, options = f"'labeller' of {self.cell!r}", ("cell", "hidden", "layers", "front")
        taken = ("kind", "dense", *options)
        if ignored := self.besides(*taken):
            return [f"A model {named} must be given the options {', '.join(taken)}, not {', '.join(ignored)}; leave "
                    "them out"]
        if self.kind == "crnn" and self.cell in STEPS:
            return [f"A model 'crnn' must have a cell of {', '.join(map(repr, CELLS))}, not {self.cell!r}; choose one, "
                    "or a labeller"]
        if self.width and self.widths:
            problems.append(f"A model {self.kind!r} must be given width or widths, not both {self.width} and "
                            f"{self.widths}; leave one out")
        if self.window and not self.window % 2:
            problems.append(f"A window must have an odd side, so that the image keeps its size, not {self.window}; "
                            f"choose {self.window - 1} or {self.window + 1}")
        if self.kind != "lstm" and self.cell != "lstm" and (self.projection or self.peephole):
            problems.append(f"Peepholes and a projection must be asked of cell 'lstm', not of {self.cell!r}; leave "
                            "them out")
        if self.projection >= self.hidden:
            problems.append(f"A projection must be below the {self.hidden} hidden units, not {self.projection}; choose "
                            "0 for none")
        return problems
