"""The parts of ``network.json``: rules of what the entries of layers are made of, before anything is made of them.

That sizes, formats and integers fit together is checked by the layers themselves. The bounds are those of what can be
computed with at all; they keep whatever is made of a network finite.
"""
from circulant.sim.arith.activation import FUNCTIONS, LINES, METHODS
from circulant.sim.arith.fft import BLOCK_SIZES
from circulant.sim.arith.weight_grid import MOST_SHIFT
from circulant.sim.files.schema import Choice, Int, Listing, Number, Rule, Table, Text
from circulant.sim.shape.recurrent import RETURNS

__all__ = ["ACTIVATION", "CANDIDATE", "COUNT", "EXTENT", "FORMAT", "FORMATS", "GATED", "GRID", "JOINED", "NAME",
           "PRODUCT", "PWL", "RECURRENT", "SIZE", "WINDOW"]

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

WINDOW = Table({"kernel": GRID, "stride": GRID, "padding": Listing(Int(0, 1 << 16), 2, 2)},
               {"dilation": GRID})

PRODUCT = Table({"block_size": Int(1, BLOCK_SIZES[-1]), "twiddle_bits": Int(0, 62),
                 **dict.fromkeys(("weight", "input", "spectrum", "product", "output"), FORMAT)},
                {"row_shifts": Listing(Int(0, MOST_SHIFT), 1, 1 << 20), "multiplier": Text(20)})

_TABLE = {"method": Choice(METHODS), "reach": Int(-FRACTION, FRACTION), "segments": Int(1, 1 << 20),
          **dict.fromkeys(("input", "output", "slope", "base"), FORMAT)}

PWL = Table({"function": Choice(tuple(FUNCTIONS)), **_TABLE})

CANDIDATE = Table({"function": Choice((*FUNCTIONS, "relu", "identity")), **_TABLE})
"""A tanh, or a ReLU or nothing in its place."""

ACTIVATION = Table({"function": Choice((*FUNCTIONS, *LINES)), **_TABLE}, {"parameters": Listing(Number(), 1, 2)})

FORMATS: dict[str, Rule] = {"input_format": FORMAT, "output_format": FORMAT}
"""Members of a layer that changes formats, of a join, of a recurrent layer, and of one with gates."""

JOINED: dict[str, Rule] = {"input_formats": Listing(FORMAT, 2, 64), "output_format": FORMAT}

RECURRENT: dict[str, Rule] = {"input_product": PRODUCT, "recurrent_product": PRODUCT, "hidden": SIZE,
                              "returns": Choice(RETURNS)}

GATED: dict[str, Rule] = {**RECURRENT, "sigmoid": PWL}
