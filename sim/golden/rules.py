"""The contents of ``network.json``: the rules of each kind of layer, before anything is made of it.

That sizes, formats and integers fit together is checked by the layers themselves. The bounds are those of what can be
computed with at all; they keep whatever is made of a network finite.
"""
from circulant.sim.arith.activation import FUNCTIONS, LINES, METHODS
from circulant.sim.arith.fft import BLOCK_SIZES
from circulant.sim.arith.weight_grid import MOST_SHIFT
from circulant.sim.files.schema import SHA, Choice, Flag, Int, Kinds, Later, Listing, Number, Rule, Table, Text
from circulant.sim.shape.geometry import MODES, ORDERS
from circulant.sim.shape.recurrent import RESETS, RETURNS
from circulant.sim.shape.reduction import MODES as REDUCTIONS

__all__ = ["COUNT", "EXTENT", "FORMAT", "LAYER", "NAME", "NETWORK", "SIZE"]

SIZE = Int(1, 1 << 24)
"""Values of a vector."""

EXTENT = Int(1, 1 << 16)
"""Pixels of an image along one of its axes."""

COUNT = Int(0, 1 << 62)
"""How many there are of something."""

NAME = Text(1000)

FRACTION = 1000
"""Fraction bits, or places before them, that float64 still has."""

FORMAT = Table({"width": Int(1, 62), "frac": Int(-FRACTION, FRACTION)})

_GRID = Listing(EXTENT, 2, 2)
_WINDOW = Table({"kernel": _GRID, "stride": _GRID, "padding": Listing(Int(0, 1 << 16), 2, 2)})
_PRODUCT = Table({"block_size": Int(1, BLOCK_SIZES[-1]), "twiddle_bits": Int(0, 62),
                  **dict.fromkeys(("weight", "input", "spectrum", "product", "output"), FORMAT)},
                 {"row_shifts": Listing(Int(0, MOST_SHIFT), 1, 1 << 20)})
_TABLE = {"method": Choice(METHODS), "reach": Int(-FRACTION, FRACTION), "segments": Int(1, 1 << 20),
          **dict.fromkeys(("input", "output", "slope", "base"), FORMAT)}
_PWL = Table({"function": Choice(tuple(FUNCTIONS)), **_TABLE})
_CANDIDATE = Table({"function": Choice((*FUNCTIONS, "relu")), **_TABLE})
_ACTIVATION = Table({"function": Choice((*FUNCTIONS, *LINES)), **_TABLE}, {"parameters": Listing(Number(), 1, 2)})


def _layer(kind: str, members: dict[str, Rule], optional: dict[str, Rule] | None = None) -> Table:
    return Table({"kind": Choice((kind,)), "name": NAME, "inputs": SIZE, **members}, optional or {})


_FORMATS = {"input_format": FORMAT, "output_format": FORMAT}
_RECURRENT = {"input_product": _PRODUCT, "recurrent_product": _PRODUCT, "sigmoid": _PWL, "tanh": _PWL, "hidden": SIZE,
              "returns": Choice(RETURNS)}
_CELLS = {
    "gru": _layer("gru", {**_RECURRENT, "candidate_input": _PRODUCT, "candidate_recurrent": _PRODUCT,
                          "reset": Choice(RESETS), "tanh": _CANDIDATE}),
    "lstm": _layer("lstm", {**_RECURRENT, "tanh_cell": _PWL, "cell": FORMAT, "peephole_format": FORMAT,
                            "outputs": SIZE}, {"projection": _PRODUCT}),
}
_CELLS["rnn"] = _layer("rnn", {"input_product": _PRODUCT, "recurrent_product": _PRODUCT, "tanh": _CANDIDATE,
                               "hidden": SIZE, "returns": Choice(RETURNS)})
_CELL = Kinds("kind", _CELLS)
_CHAIN = Listing(Later(lambda: LAYER), most=1000)

LAYER: Rule = Kinds("kind", {
    "linear": _layer("linear", {"relu": Flag(), "product": _PRODUCT, "outputs": SIZE}),
    **_CELLS,
    "bidirectional": _layer("bidirectional", {"forward": _CELL, "backward": _CELL}),
    "conv": _layer("conv", {"grid": _GRID, "window": _WINDOW, "relu": Flag(), "product": _PRODUCT, "outputs": SIZE}),
    "pool": _layer("pool", {"grid": _GRID, "window": _WINDOW, "mode": Choice(MODES), **_FORMATS}),
    "flatten": _layer("flatten", {"grid": _GRID, "order": Choice(ORDERS), "rows": Flag(), **_FORMATS}),
    "scale": _layer("scale", {"relu": Flag(), "factor": FORMAT, **_FORMATS}),
    "activation": _layer("activation", {"table": _ACTIVATION}),
    "residual": _layer("residual", {"relu": Flag(), "body": _CHAIN, "shortcut": _CHAIN, **_FORMATS}, {"grid": _GRID}),
    "over_time": _layer("over_time", {"mode": Choice(REDUCTIONS), **_FORMATS}),
    "argmax": _layer("argmax", {"input_format": FORMAT}),
})

NETWORK = Table({"name": NAME, "inputs": SIZE, "sequence": Flag(), "shape": Listing(SIZE, most=3), "weights": SHA,
                 "layers": Listing(LAYER, 1, 10_000)}, {"ragged": Flag()})
