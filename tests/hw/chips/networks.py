"""Small networks that are divided over chips."""
from functools import cache

import numpy as np

from benchmarks import stacks
from benchmarks.stacks import Shape
from circulant.hw.chips.cluster import Chip, Cluster, Link
from circulant.hw.chips.cut import Place

ROWS = {"lstm1": Place((0,)), "lstm2": Place((0, 1), (1, 3))}
"""The second layer's rows over two chips."""


@cache
def pair():
    """Two LSTMs of 16, whose second one has an input and a state of one format."""
    return stacks.network(Shape("lstm", 2, 16, inputs=8), 4)


def data(network, count=3, steps=9):
    return np.random.default_rng(5).normal(0, 0.5, (count, steps, network.flow.size))


def cluster(*multipliers, bits=64, latency=3, **more):
    return Cluster(tuple(Chip(f"chip{n}", each) for n, each in enumerate(multipliers)), Link(bits, latency), **more)
