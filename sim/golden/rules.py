"""The contents of ``network.json``: the rules of each kind of layer, before anything is made of it.

That sizes, formats and integers fit together is checked by the layers themselves. The bounds are those of what can be
computed with at all; they keep whatever is made of a network finite.
"""
from circulant.sim.arith.activation import FUNCTIONS, LINES, METHODS
from circulant.sim.arith.fft import BLOCK_SIZES
from circulant.sim.arith.weight_grid import MOST_SHIFT
from circulant.sim.files.schema import SHA, Choice, Flag, Int, Kinds, Listing, Number, Rule, Table, Text
from circulant.sim.shape.geometry import MODES, ORDERS
from circulant.sim.shape.recurrent import RESETS, RETURNS
from circulant.sim.shape.reduction import MODES as REDUCTIONS

__all__ = ["CELLS", "COUNT", "EXTENT", "FORMAT", "GRID", "LAYERS", "NAME", "NETWORK", "SIZE", "layer"]

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

GRID = Listing(EXTENT, 2, 2)
_WINDOW = Table({"kernel": GRID, "stride": GRID, "padding": Listing(Int(0, 1 << 16), 2, 2)})
_PRODUCT = Table({"block_size": Int(1, BLOCK_SIZES[-1]), "twiddle_bits": Int(0, 62),
                  **dict.fromkeys(("weight", "input", "spectrum", "product", "output"), FORMAT)},
                 {"row_shifts": Listing(Int(0, MOST_SHIFT), 1, 1 << 20)})
_TABLE = {"method": Choice(METHODS), "reach": Int(-FRACTION, FRACTION), "segments": Int(1, 1 << 20),
          **dict.fromkeys(("input", "output", "slope", "base"), FORMAT)}
_PWL = Table({"function": Choice(tuple(FUNCTIONS)), **_TABLE})
_CANDIDATE = Table({"function": Choice((*FUNCTIONS, "relu")), **_TABLE})
_ACTIVATION = Table({"function": Choice((*FUNCTIONS, *LINES)), **_TABLE}, {"parameters": Listing(Number(), 1, 2)})


_FORMATS = {"input_format": FORMAT, "output_format": FORMAT}
_JOINED = {"input_formats": Listing(FORMAT, 2, 64), "output_format": FORMAT}
_RECURRENT = {"input_product": _PRODUCT, "recurrent_product": _PRODUCT, "hidden": SIZE, "returns": Choice(RETURNS)}
_GATED = {**_RECURRENT, "sigmoid": _PWL}

CELLS: dict[str, tuple[dict[str, Rule], dict[str, Rule]]] = {
    "gru": ({**_GATED, "candidate_input": _PRODUCT, "candidate_recurrent": _PRODUCT, "reset": Choice(RESETS),
             "tanh": _CANDIDATE}, {}),
    "lstm": ({**_GATED, "tanh": _PWL, "tanh_cell": _PWL, "cell": FORMAT, "peephole_format": FORMAT, "outputs": SIZE},
             {"projection": _PRODUCT}),
    "rnn": ({**_RECURRENT, "tanh": _CANDIDATE}, {}),
}
"""By kind the members that an entry of a recurrent layer has and may have, besides its kind, name and inputs."""

LAYERS: dict[str, tuple[dict[str, Rule], dict[str, Rule]]] = {
    "linear": ({"relu": Flag(), "product": _PRODUCT, "outputs": SIZE}, {}),
    **CELLS,
    "conv": ({"grid": GRID, "window": _WINDOW, "relu": Flag(), "product": _PRODUCT, "outputs": SIZE}, {}),
    "pool": ({"grid": GRID, "window": _WINDOW, "mode": Choice(MODES), **_FORMATS}, {}),
    "flatten": ({"grid": GRID, "order": Choice(ORDERS), "rows": Flag(), **_FORMATS}, {}),
    "scale": ({"relu": Flag(), "factor": FORMAT, **_FORMATS}, {}),
    "activation": ({"table": _ACTIVATION}, {}),
    "over_time": ({"mode": Choice(REDUCTIONS), **_FORMATS}, {}),
    "argmax": ({"input_format": FORMAT}, {}),
    "add": ({"relu": Flag(), **_JOINED}, {}),
    "concat": ({"sizes": Listing(SIZE, 2, 64), **_JOINED}, {}),
    "reverse": ({"input_format": FORMAT}, {}),
}
"""The same for every kind of layer."""


def layer(kind: str, members: dict[str, Rule], optional: dict[str, Rule]) -> Table:
    """The rule of an entry with its kind, name and inputs."""
    return Table({"kind": Choice((kind,)), "name": NAME, "inputs": SIZE, **members}, optional)


_SOURCES = {"sources": Listing(NAME, 1, 64)}
_INPUT = Table({"name": NAME, "size": SIZE, "sequence": Flag(), "shape": Listing(SIZE, most=3)}, {"grid": GRID})

NETWORK = Table({
    "name": NAME, "weights": SHA, "inputs": Listing(_INPUT, 1, 1000), "outputs": Listing(NAME, 1, 1000),
    "nodes": Listing(Kinds("kind", {kind: layer(kind, _SOURCES | members, optional)
                                    for kind, (members, optional) in LAYERS.items()}), 1, 100_000)},
    {"ragged": Flag()})
