"""The kinds of layers of a golden network."""
from circulant.sim.golden.activation import Activation
from circulant.sim.golden.add import Add
from circulant.sim.golden.concat import Concat
from circulant.sim.golden.conv import Conv
from circulant.sim.golden.flatten import Flatten
from circulant.sim.golden.gru import Gru
from circulant.sim.golden.linear import Linear
from circulant.sim.golden.lstm import Lstm
from circulant.sim.golden.pool import Pool
from circulant.sim.golden.reduce.argmax import Argmax
from circulant.sim.golden.reduce.over_time import OverTime
from circulant.sim.golden.reverse import Reverse
from circulant.sim.golden.rnn import Rnn
from circulant.sim.golden.scale import Scale

__all__ = ["Cell", "Layer", "Recurrent"]

Layer = (Linear | Gru | Lstm | Rnn | Conv | Pool | Flatten | Scale | Activation | OverTime | Add | Concat | Reverse
         | Argmax)

Recurrent = Gru | Lstm | Rnn | OverTime
"""Layers that take a sequence, and have a state."""

Cell = Gru | Lstm | Rnn
"""Recurrent layers with matrices."""
