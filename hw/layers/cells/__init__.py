"""The pointwise parts of the cells, one element per cycle: from pre-activations and state to the next state and y."""
from functools import singledispatch

from circulant.hw.layers.cells.cell import Cell
from circulant.hw.layers.cells.gru import CandidateCell, GruCell, ResetCell
from circulant.hw.layers.cells.lstm import LstmCell
from circulant.hw.layers.cells.rnn import RnnCell
from circulant.sim.golden.stages import Stage
from circulant.sim.kinds.gru import Gru
from circulant.sim.kinds.lstm import Lstm
from circulant.sim.kinds.rnn import Rnn

__all__ = ["CandidateCell", "Cell", "GruCell", "LstmCell", "ResetCell", "RnnCell", "cells_of"]


@singledispatch
def cells_of(layer: Stage) -> list[type[Cell]]:
    """The cells of a layer: what takes the rows of each stage, if it is no projection; none without a state."""
    return []


@cells_of.register
def _(layer: Lstm) -> list[type[Cell]]:
    return [LstmCell]


@cells_of.register
def _(layer: Gru) -> list[type[Cell]]:
    return [GruCell] if layer.reset == "after" else [ResetCell, CandidateCell]


@cells_of.register
def _(layer: Rnn) -> list[type[Cell]]:
    return [RnnCell]
