"""Random graphs over vectors or steps: branches that part, cross, and meet in joins of every kind."""
from collections.abc import Callable
from typing import Any

import numpy as np

from circulant.sim.kinds.add import FloatAdd
from circulant.sim.kinds.blend import FloatBlend
from circulant.sim.kinds.concat import FloatConcat
from circulant.sim.kinds.difference import FloatDifference
from circulant.sim.kinds.gate import FloatGate
from circulant.sim.kinds.maximum import FloatMaximum
from circulant.sim.kinds.minimum import FloatMinimum
from circulant.sim.kinds.product import FloatProduct
from circulant.sim.kinds.repeat import FloatRepeat
from circulant.sim.kinds.reverse import FloatReverse
from circulant.sim.kinds.slice import FloatSlice
from circulant.sim.real.float_model import Model
from circulant.sim.shape.graph import Input, Node
from circulant.sim.shape.window import Flow

__all__ = ["EVERY", "HELD", "WIDE", "graph"]

KINDS = ("linear", "linear", "cell", "scale", "activation", "add", "add", "concat", "concat")

JOINS = {"add": FloatAdd, "product": FloatProduct, "difference": FloatDifference, "maximum": FloatMaximum,
         "minimum": FloatMinimum}

WIDE = (*KINDS, *JOINS, "slice", "slice", "last")
"""Kinds of graphs that also have the other joins, ranges of vectors, and layers that give a vector for a sequence."""

EVERY = (*WIDE, *("norm", "taps", "blend", "decay") * 2)
"""Kinds of those that have normalisations, earlier steps and scans besides."""

HELD = ("excite", "repeat", "both") * 4
"""Kinds of those that hold a vector for all steps of a sequence, or take it in both directions."""

WIDEST = 24
"""Values of vectors side by side, at the most."""


class _Graph:
    """A graph that grows.

    Parameters:
        make: as of `graph`.
        inputs: by name.
    """

    def __init__(self, rng: np.random.Generator, make: Callable[..., Any], inputs: dict[str, Flow]) -> None:
        self.rng, self.make = rng, make
        self.flows = dict(inputs)
        self.nodes: list[Node] = []

    def take(self, layer: Any, *sources: str) -> str:
        self.nodes.append(Node(layer, sources))
        self.flows[layer.name] = layer.following([self.flows[source] for source in sources])
        return str(layer.name)

    def fresh(self) -> str:
        return f"n{len(self.nodes)}"

    def linear(self, source: str, outputs: int, name: str = "") -> str:
        return self.take(self.make("linear", name or self.fresh(), self.flows[source].size, outputs), source)

    def grow(self, kind: str) -> None:
        """A node of a kind, or a linear layer, where none of it fits behind those that are drawn."""
        first = str(self.rng.choice(list(self.flows)))
        alike = [name for name, flow in self.flows.items() if flow.sequence == self.flows[first].sequence]
        second = str(self.rng.choice(alike))
        size, sequence = self.flows[first].size, self.flows[first].sequence
        if kind in ("scale", "activation", "norm") or (sequence and kind in ("cell", "last", "decay")) or (
                sequence and kind == "taps" and size <= WIDEST // 2):
            self.take(self.make(kind, self.fresh(), size), first)
        elif kind == "both" and sequence:
            self.both(first)
        elif kind in HELD and sequence:
            self.hold(kind, first)
        elif kind == "blend" and sequence:
            gate = self.take(self.make("gate", self.fresh(), size), first)
            if size != self.flows[second].size:
                second = self.linear(second, size)
            self.take(FloatBlend(self.fresh(), size), gate, second)
        elif kind in JOINS:
            if size != self.flows[second].size:
                second = self.linear(second, size)
            self.take(JOINS[kind](self.fresh(), size, relu=bool(self.rng.integers(2))), first, second)
        elif kind == "concat" and size + self.flows[second].size <= WIDEST:
            self.take(FloatConcat(self.fresh(), (size, self.flows[second].size)), first, second)
        elif kind == "slice" and size > 1:
            begin = int(self.rng.integers(size))
            self.take(FloatSlice(self.fresh(), size, begin, int(self.rng.integers(1, size - begin + 1))), first)
        else:
            self.linear(first, int(self.rng.integers(3, 9)))

    def hold(self, kind: str, steps: str) -> None:
        """A vector that is held for all steps, of which it is made where there is none."""
        vectors = [name for name, flow in self.flows.items() if not flow.sequence]
        size = self.flows[steps].size
        vector = str(self.rng.choice(vectors)) if vectors else self.take(self.make("last", self.fresh(), size), steps)
        if kind == "repeat":
            self.take(FloatRepeat(self.fresh(), self.flows[vector].size, size), steps, vector)
            return
        vector = vector if self.flows[vector].size == size else self.linear(vector, size)
        self.take(FloatGate(self.fresh(), size, relu=bool(self.rng.integers(2))), steps, vector)

    def both(self, steps: str) -> None:
        """Cells from the first step on and from the last one, side by side: all of their steps or the last."""
        kind, size, back = str(self.rng.choice(("cell", "last"))), self.flows[steps].size, self.fresh()
        self.take(FloatReverse(back, size), steps)
        ends = [self.take(self.make(kind, self.fresh(), size), source) for source in (steps, back)]
        if kind == "cell":
            ends[1] = self.take(FloatReverse(self.fresh(), self.flows[ends[1]].size), ends[1])
        self.take(FloatConcat(self.fresh(), tuple(self.flows[end].size for end in ends)), *ends)

    def ends(self) -> list[str]:
        """Inputs and nodes that nothing takes."""
        used = {source for node in self.nodes for source in node.sources}
        return [name for name in self.flows if name not in used]


def graph(rng: np.random.Generator, name: str, make: Callable[..., Any], *, sequence: bool, nodes: int,
          wide: bool = False, ports: bool = False, every: bool = False, held: bool = False) -> Model:
    """A model whose layers take any that come before; what nothing takes is put side by side in front of the last one.

    Parameters:
        make: a layer from its kind ("linear", "cell", "scale", "activation", "gate", "norm", "taps", "decay", "last"),
            name and values of what comes, and of a linear one the values that it gives. A "last" one gives a vector for
            a sequence.
        sequence: whether steps of sequences come, with recurrent layers among the nodes.
        nodes: how many there are, besides two at the end.
        wide, every, held: whether all of `WIDE`, or of `EVERY`, are drawn, and `HELD` besides.
        ports: whether there may be several inputs and outputs, some of them in the middle.
    """
    inputs = {"x": Flow(int(rng.integers(3, 9)), sequence=sequence)}
    for n in range(int(rng.integers(3)) if ports else 0):
        inputs[f"x{n}"] = Flow(int(rng.integers(3, 9)), sequence=sequence and bool(rng.integers(3)))
    grown = _Graph(rng, make, inputs)
    while len(grown.nodes) < nodes:
        grown.grow(str(rng.choice((*(EVERY if every else WIDE if wide else KINDS), *(HELD if held else ())))))
    if not ports:
        ends = grown.ends()
        if len({grown.flows[end].sequence for end in ends}) > 1:  # One vector for a sequence of all of them.
            ends = [grown.take(make("last", grown.fresh(), grown.flows[end].size), end)
                    if grown.flows[end].sequence else end for end in ends]
        sizes = tuple(grown.flows[end].size for end in ends)
        last = grown.take(FloatConcat("ends", sizes), *ends) if len(ends) > 1 else ends[0]
        grown.linear(last, 3, "out")
        return Model(name, (Input("x", inputs["x"]),), tuple(grown.nodes), ("out",))
    outputs = [grown.linear(end, 3) if end in inputs else end for end in grown.ends()]
    for steps in (True, False):
        alike = [end for end in outputs if grown.flows[end].sequence == steps]
        sizes = tuple(grown.flows[end].size for end in alike)
        if len(alike) > 1 and sum(sizes) <= 2 * WIDEST and rng.integers(2):
            both = grown.take(FloatConcat(f"ends{int(steps)}", sizes), *alike)
            outputs = [end for end in outputs if end not in alike] + [grown.linear(both, 3)]
    middle = str(rng.choice([node.name for node in grown.nodes]))
    if rng.integers(2) and middle not in outputs:
        outputs.insert(0, middle)
    return Model(name, tuple(Input(*each) for each in inputs.items()), tuple(grown.nodes), tuple(outputs))
