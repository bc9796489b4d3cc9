"""Random graphs of layers over vectors or steps: branches that part, cross and meet in sums and side by side."""
import numpy as np

from circulant.sim.kinds.add import FloatAdd
from circulant.sim.kinds.concat import FloatConcat
from circulant.sim.real import float_model
from circulant.sim.shape.graph import Input, Node
from circulant.sim.shape.window import Flow
from tests.random_networks import Random

__all__ = ["graph"]

KINDS = ("linear", "linear", "cell", "scale", "activation", "add", "add", "concat", "concat")


def graph(seed, *, nodes=8, steps=None):
    """A float model whose nodes take any that come before; what nothing takes is put side by side at the end.

    Parameters:
        steps: whether steps of sequences come, with recurrent layers among the nodes; drawn where it is None.
    """
    rng, r = np.random.default_rng(seed), Random(seed)
    sequence = bool(rng.integers(2)) if steps is None else steps
    sizes = {"x": int(rng.integers(3, 9))}
    made: list[Node] = []

    def take(layer, *sources):
        made.append(Node(layer, sources))
        sizes[layer.name] = layer.outputs

    def linear(name, source, outputs):
        take(r.linear(name, sizes[source], outputs, int(rng.choice([1, 2, 4])), relu=bool(rng.integers(2))), source)

    while len(made) < nodes:
        kind, name = str(rng.choice(KINDS)), f"n{len(made)}"
        first, second = (str(rng.choice(list(sizes))) for _ in range(2))
        if kind == "cell" and sequence:
            make = (r.gru, r.rnn, r.lstm)[rng.integers(3)]
            take(make(name, sizes[first], int(rng.integers(3, 8)), int(rng.choice([2, 4])), "sequence"), first)
        elif kind == "scale":
            take(r.scale(name, sizes[first], relu=bool(rng.integers(2))), first)
        elif kind == "activation":
            take(r.activation(name, sizes[first], str(rng.choice(["tanh", "relu"]))), first)
        elif kind == "add" and made:
            if sizes[first] != sizes[second]:
                linear(name, second, sizes[first])
                second, name = name, f"n{len(made)}"
            take(FloatAdd(name, sizes[first], relu=bool(rng.integers(2))), first, second)
        elif kind == "concat" and made and sizes[first] + sizes[second] <= 24:
            take(FloatConcat(name, (sizes[first], sizes[second])), first, second)
        else:
            linear(name, first, int(rng.integers(3, 9)))
    used = {source for node in made for source in node.sources}
    ends = [name for name in sizes if name not in used]
    if len(ends) > 1:
        take(FloatConcat("ends", tuple(sizes[name] for name in ends)), *ends)
    linear("out", made[-1].name, 3)
    return float_model.Model(f"graph_{seed}", (Input("x", Flow(sizes["x"], sequence=sequence)),), tuple(made), ("out",))
