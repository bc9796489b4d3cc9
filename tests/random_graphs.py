"""Random graphs of small layers, see `benchmarks.graphs`."""
import numpy as np

from benchmarks import graphs
from circulant.sim.kinds.over_time import FloatOverTime
from tests.random_networks import Random

__all__ = ["graph"]


def graph(seed, *, nodes=8, **options):
    """A float model over vectors or steps.

    Parameters:
        options: of `benchmarks.graphs.graph`.
    """
    rng, r = np.random.default_rng(seed), Random(seed)

    def make(kind, name, inputs, outputs=0):
        if kind == "linear":
            return r.linear(name, inputs, outputs, int(rng.choice([1, 2, 4])), relu=bool(rng.integers(2)))
        if kind == "scale":
            return r.scale(name, inputs, relu=bool(rng.integers(2)))
        if kind == "norm":
            return r.norm(name, inputs, str(rng.choice(["layer", "rms"])))
        if kind == "taps":
            return r.taps(name, inputs, int(rng.integers(2, 4)), int(rng.integers(1, 3)), int(rng.choice([1, 2, 4])))
        if kind == "decay":
            return r.spiral(name, inputs) if inputs % 2 == 0 and rng.integers(2) == 0 else r.decay(name, inputs)
        if kind == "gate":
            return r.activation(name, inputs, "sigmoid")
        if kind == "activation":
            return r.activation(name, inputs, str(rng.choice(["tanh", "relu"])))
        if kind == "last" and rng.integers(2):
            return FloatOverTime(name, inputs, str(rng.choice(["mean", "max", "last"])))
        cell = (r.gru, r.rnn, r.lstm)[rng.integers(3)]
        returns = "last" if kind == "last" else "sequence"
        return cell(name, inputs, int(rng.integers(3, 8)), int(rng.choice([2, 4])), returns)

    return graphs.graph(rng, f"graph_{seed}", make, sequence=bool(rng.integers(2)), nodes=nodes, **options)
