"""Random graphs of small layers, see `benchmarks.graphs`."""
import numpy as np

from benchmarks import graphs
from tests.random_networks import Random

__all__ = ["graph"]


def graph(seed, *, nodes=8):
    """A float model over vectors or steps."""
    rng, r = np.random.default_rng(seed), Random(seed)

    def make(kind, name, inputs, outputs=0):
        if kind == "linear":
            return r.linear(name, inputs, outputs, int(rng.choice([1, 2, 4])), relu=bool(rng.integers(2)))
        if kind == "scale":
            return r.scale(name, inputs, relu=bool(rng.integers(2)))
        if kind == "activation":
            return r.activation(name, inputs, str(rng.choice(["tanh", "relu"])))
        cell = (r.gru, r.rnn, r.lstm)[rng.integers(3)]
        return cell(name, inputs, int(rng.integers(3, 8)), int(rng.choice([2, 4])), "sequence")

    return graphs.graph(rng, f"graph_{seed}", make, sequence=bool(rng.integers(2)), nodes=nodes)
