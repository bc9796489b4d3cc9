"""Random graphs over vectors or steps: branches that part, cross, and meet in sums and side by side."""
from collections.abc import Callable
from typing import Any

import numpy as np

from circulant.sim.kinds.add import FloatAdd
from circulant.sim.kinds.concat import FloatConcat
from circulant.sim.real.float_model import Model
from circulant.sim.shape.graph import Input, Node
from circulant.sim.shape.window import Flow

__all__ = ["graph"]

KINDS = ("linear", "linear", "cell", "scale", "activation", "add", "add", "concat", "concat")

WIDEST = 24
"""Values of vectors side by side, at the most."""


def graph(rng: np.random.Generator, name: str, make: Callable[..., Any], *, sequence: bool, nodes: int) -> Model:
    """A model whose layers take any that come before; what nothing takes is put side by side in front of the last one.

    Parameters:
        make: a layer from its kind ("linear", "cell", "scale", "activation"), name and values of what comes, and of a
            linear one the values that it gives.
        sequence: whether steps of sequences come, with recurrent layers among the nodes.
        nodes: how many there are, besides two at the end.
    """
    sizes = {"x": int(rng.integers(3, 9))}
    made: list[Node] = []

    def take(layer: Any, *sources: str) -> str:
        made.append(Node(layer, sources))
        sizes[layer.name] = layer.outputs
        return str(layer.name)

    def fresh() -> str:
        return f"n{len(made)}"

    while len(made) < nodes:
        kind = str(rng.choice(KINDS))
        first, second = (str(rng.choice(list(sizes))) for _ in range(2))
        if kind in ("scale", "activation") or (kind == "cell" and sequence):
            take(make(kind, fresh(), sizes[first]), first)
        elif kind == "add":
            if sizes[first] != sizes[second]:
                second = take(make("linear", fresh(), sizes[second], sizes[first]), second)
            take(FloatAdd(fresh(), sizes[first], relu=bool(rng.integers(2))), first, second)
        elif kind == "concat" and sizes[first] + sizes[second] <= WIDEST:
            take(FloatConcat(fresh(), (sizes[first], sizes[second])), first, second)
        else:
            take(make("linear", fresh(), sizes[first], int(rng.integers(3, 9))), first)
    used = {source for node in made for source in node.sources}
    ends = [each for each in sizes if each not in used]
    last = take(FloatConcat("ends", tuple(sizes[each] for each in ends)), *ends) if len(ends) > 1 else ends[0]
    take(make("linear", "out", sizes[last], 3), last)
    return Model(name, (Input("x", Flow(sizes["x"], sequence=sequence)),), tuple(made), ("out",))
