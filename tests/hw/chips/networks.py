"""Small networks that are divided over chips."""
from dataclasses import replace
from functools import cache

import numpy as np

from benchmarks import stacks
from benchmarks.draw import recurrent_layers
from benchmarks.rnn import layer
from benchmarks.stacks import Shape
from circulant.hw.chips.cluster import Chip, Cluster, Link
from circulant.hw.chips.cut import Place
from circulant.sim.kinds.gru import FloatGru
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real.float_model import Model

ROWS = {"lstm1": Place((0,)), "lstm2": Place((0, 1), (1, 3))}
"""The second layer's rows over two chips."""


@cache
def pair(cell="lstm"):
    """Two layers of 16, whose second one has an input and a state of one format."""
    return stacks.network(Shape(cell, 2, 16, inputs=8), 4)


def rows(cell):
    """The same with the second layer's rows over two chips."""
    return {name.replace("lstm", cell): place for name, place in ROWS.items()}


@cache
def classifier():
    """A GRU that gives its last state, and a linear layer."""
    rng = np.random.default_rng(3)
    layers = [replace(each, returns="last") if isinstance(each, FloatGru) else each
              for each in recurrent_layers(rng, 6, ["gru after"], [4, 4])]
    return quantize(Model.chain("classifier", 6, True, layers), rng.normal(0, 1, (6, 9, 6)))


@cache
def tagger():
    """The LSTMs of a `pair`, and a linear layer behind each step."""
    rng = np.random.default_rng(3)
    cells = [replace(layer("lstm", inputs, 16, projection=0, block=4, seed=n), name=f"lstm{n}", peephole=None)
             for n, inputs in enumerate((8, 16), start=1)]
    out = FloatLinear("out", 16, 8, rng.normal(0, 0.3, (2, 4, 4)), rng.normal(0, 0.1, 8))
    return quantize(Model.chain("tagger", 8, True, (*cells, out)), rng.normal(0, 0.5, (6, 9, 8)))


def data(network, count=3, steps=9):
    return np.random.default_rng(5).normal(0, 0.5, (count, steps, network.flow.size))


def cluster(*multipliers, bits=64, latency=3, **more):
    return Cluster(tuple(Chip(f"chip{n}", each) for n, each in enumerate(multipliers)), Link(bits, latency), **more)
