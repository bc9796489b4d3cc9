"""A network as a graph: named inputs, nodes in topological order, named outputs.

A model in float64 and its golden network are the same graph with other layers. Every pass over a network is one call of
`Graph.walk`, which hands each node what its sources came to.
"""
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, count
from typing import Any, Self, TypeVar

from numpy.typing import NDArray

from circulant.sim.refusal import Refusal
from circulant.sim.shape.flows import entry
from circulant.sim.shape.sequences import Lengths, flat, padded_again
from circulant.sim.shape.window import Flow

__all__ = ["Graph", "Input", "Node", "computed", "free_name", "linked"]

Value = TypeVar("Value")

LONGEST = 100
"""Characters of the name of a network or a node, of which file names and identifiers are made."""

NODE_NAME = rf"[A-Za-z0-9_]{{1,{LONGEST}}}(\.[a-z]{{1,20}})?"
"""A name, or that of a part of what has a name: both directions of ``rnn`` are ``rnn.forward`` and ``rnn.backward``."""


@dataclass(frozen=True)
class Input:
    """An input of a network.

    Parameters:
        flow: what comes.
        shape: of a sample as data have it, where that is neither the vector nor the sequence: (channels, height, width)
            or (channels, length) of an image, the axes of a vector of all its values.
        axes: of an image whose data has them in another order: for channels, height and width, or channels and length,
            the axis of ``shape``. Of sequences whose data has the steps last: (1, 0).
    """

    name: str
    flow: Flow
    shape: tuple[int, ...] = ()
    axes: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Node:
    """A layer, and the names of the inputs and nodes that it takes, in the order of its arguments."""

    layer: Any
    sources: tuple[str, ...]

    @property
    def name(self) -> str:
        return str(self.layer.name)


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """
    Parameters:
        outputs: names of nodes.

    Raises:
        Refusal: when a name is none that a file and an identifier can have, or stands for two things; when a node
            takes what does not come before it, or what its sources do not give; when nothing takes an input or a node.
    """

    name: str
    inputs: tuple[Input, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or len(self.name) > LONGEST:
            raise Refusal(f"The name of a network must be a text of at most {LONGEST} characters, not "
                          f"{str(self.name)[:20]!r}… of {len(str(self.name))}; shorten it")
        if not self.nodes:
            raise Refusal(f"Network {self.name!r} must have at least one layer, not none; add a GRU or a Linear")
        known: set[str] = set()
        for name in (*(each.name for each in self.inputs), *(node.name for node in self.nodes)):
            if not re.fullmatch(NODE_NAME, name):
                raise Refusal(f"The name of a layer must be at most {LONGEST} letters, digits and '_', not "
                              f"{name[:40]!r}{'…' * (len(name) > 40)} in network {self.name!r}; rename it")
            if name in known:
                raise Refusal(f"The layers of network {self.name!r} must have different names, but two are called "
                              f"{name!r}; rename one")
            known.add(name)
        self._check_edges()
        _ = self.flows

    @classmethod
    def chain(cls, name: str, inputs: int, sequence: bool, layers: Sequence[Any], shape: tuple[int, ...] = (),
              **more: Any) -> Self:
        """The network of layers in a row, over vectors of ``inputs`` values or sequences of them.

        Parameters:
            layers: also those that stand for several nodes: both directions, the sum of two branches.
            shape: see `Input`. To a first layer that takes images a sample is one, and ``inputs`` are its channels.
            more: further fields of the class.

        Raises:
            Refusal: as the class, and when a sample of the shape has not these inputs.
        """
        start = free_name("input", (layer.name for layer in layers))
        nodes = linked(layers, start)
        return cls(name, (Input(start, entry(name, inputs, sequence, shape, layers), shape),), tuple(nodes),
                   tuple(node.name for node in nodes[-1:]), **more)

    def _check_edges(self) -> None:
        known = {each.name for each in self.inputs}
        for node in self.nodes:
            due = 2 if node.layer.joins else 1
            if len(node.sources) < due or (due == 1 and len(node.sources) > 1):
                raise Refusal(f"Layer {node.name!r} must take {'two sources or more' if due == 2 else 'one source'}, "
                              f"not {len(node.sources)}; correct the network")
            for source in node.sources:
                if source not in known:
                    raise Refusal(f"Layer {node.name!r} must take inputs and layers that come before it, not "
                                  f"{source!r}; there are {', '.join(sorted(known)[:8])}")
            known.add(node.name)
        made = {node.name for node in self.nodes}
        for name in self.outputs:
            if name not in made:
                raise Refusal(f"An output of network {self.name!r} must be one of its layers, not {name!r}; name one")
        if not self.outputs or len(set(self.outputs)) < len(self.outputs):
            raise Refusal(f"Network {self.name!r} must have outputs that differ, not {list(self.outputs)}; name each "
                          "once")
        used = {source for node in self.nodes for source in node.sources} | set(self.outputs)
        if idle := [name for name in known if name not in used]:
            raise Refusal(f"Each input and layer of network {self.name!r} must be taken by a layer or be an output, "
                          f"but nothing takes {idle[0]!r}; leave it out")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} {len(self.nodes)} nodes>"

    def __str__(self) -> str:
        """A line for each input and node: its name, kind, sources and what it gives."""
        rows = [(each.name, "input", "", str(self.flows[each.name])) for each in self.inputs]
        rows += [(node.name, node.layer.kind, ", ".join(node.sources),
                  f"{self.flows[node.name]}{' → output' * (node.name in self.outputs)}") for node in self.nodes]
        wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(text.ljust(size) for text, size in zip(row, wide, strict=True)).rstrip()
                         for row in rows)

    @property
    def layers(self) -> tuple[Any, ...]:
        """The layers of all nodes, in the order of computation."""
        return tuple(node.layer for node in self.nodes)

    @cached_property
    def flows(self) -> dict[str, Flow]:
        """The flow of what each input and node gives, by name."""
        return self.walk({each.name: each.flow for each in self.inputs},
                         lambda layer, flows: layer.following(flows), every=True)

    @cached_property
    def readers(self) -> dict[str, tuple[Node, ...]]:
        """The nodes that take each input and node, by its name; one that takes it twice stands there twice."""
        found: dict[str, list[Node]] = {name: [] for name in self.flows}
        for node in self.nodes:
            for source in node.sources:
                found[source].append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    def walk(self, given: Mapping[str, Value], step: Callable[[Any, Sequence[Value]], Value], *,
             every: bool = False) -> dict[str, Value]:
        """The values of the outputs by name, of whatever a pass computes.

        Parameters:
            given: by name what the inputs are.
            step: from a layer and what its sources came to, to what the layer comes to.
            every: whether to return the values of all inputs and nodes; else each is dropped behind its last reader.
        """
        found = dict(given)
        left = Counter(source for node in self.nodes for source in node.sources)
        left.update(self.outputs)
        for node in self.nodes:
            found[node.name] = step(node.layer, [found[source] for source in node.sources])
            left.subtract(node.sources)
            if not every:
                for source in set(node.sources):
                    if not left[source]:
                        del found[source]
        return found if every else {name: found[name] for name in self.outputs}

    def mapped(self, change: Callable[[Any], Any]) -> Self:
        """The graph whose layers are what ``change`` makes of them, under the same names."""
        return replace(self, nodes=tuple(Node(change(node.layer), node.sources) for node in self.nodes))

    @property
    def entry(self) -> Input:
        """The only input.

        Raises:
            Refusal: when there are several.
        """
        return _only(self.name, "input", self.inputs)

    @property
    def exit(self) -> str:
        """The name of the only output.

        Raises:
            Refusal: when there are several.
        """
        return _only(self.name, "output", self.outputs)

    @property
    def flow(self) -> Flow:
        """The flow of the only input."""
        return self.entry.flow

    @property
    def end(self) -> Flow:
        """The flow of the only output."""
        return self.flows[self.exit]

    @property
    def leading(self) -> Input:
        """The input whose vectors are the steps of a sample: the first that takes sequences or images, else the
        first."""
        return next((each for each in self.inputs if each.flow.sequence or each.flow.grid is not None), self.inputs[0])

    @property
    def result(self) -> str:
        """The name of the output that is looked at first: the first one that gives sequences, else the first."""
        return next((name for name in self.outputs if self.flows[name].sequence), self.outputs[0])

    @property
    def many(self) -> bool:
        """Whether there are several inputs, or several outputs."""
        return len(self.inputs) > 1 or len(self.outputs) > 1

    @property
    def sequence(self) -> bool:
        """Whether sequences come."""
        return any(each.flow.sequence for each in self.inputs)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a sample, see `Input`."""
        return self.entry.shape


def _only(name: str, what: str, found: Sequence[Any]) -> Any:
    if len(found) != 1:
        names = ", ".join(getattr(each, "name", each) for each in found)
        raise Refusal(f"Network {name!r} must have one {what} for this, not {len(found)}, {names}; "
                      "give a dictionary by name, or take a part of it")
    return found[0]


def linked(layers: Sequence[Any], source: str) -> list[Node]:
    """The nodes of layers in a row, the first of which takes ``source``."""
    nodes: list[Node] = []
    for layer in layers:
        nodes += layer.nodes(source) if hasattr(layer, "nodes") else [Node(layer, (source,))]
        source = nodes[-1].name
    return nodes


def free_name(wish: str, taken: Iterable[str]) -> str:
    """A name that is not taken: the wish itself, or with a number behind it."""
    names = set(taken)
    return next(name for name in chain([wish], (f"{wish}_{n}" for n in count(1))) if name not in names)


def computed(graph: Graph, values: Mapping[str, Any], observer: Any, lengths: Lengths | None = None
             ) -> dict[str, NDArray[Any]]:
    """The outputs by name, of golden layers or those of a model; beyond the end of a sequence they are 0.

    Parameters:
        values: of the inputs by name, as `circulant.sim.shape.flows.check_data` gives them.
        observer: the last argument of every layer: what is shown its tensors.
        lengths: of sequences (N, T, …), in descending order; None where all have T steps.
    """
    def step(layer: Any, given: Sequence[tuple[Any, Lengths | None]]) -> tuple[Any, Lengths | None]:
        known = given[0][1]
        if known is None:
            return layer(layer.argument([each for each, _ in given]), observer), None
        if layer.whole:
            y = layer(layer.argument([each for each, _ in given]), observer, known)
            return y, known if layer.returns == "sequence" else None
        vectors = layer(layer.argument([flat(each, known) for each, _ in given]), observer)
        return padded_again(vectors, known, given[0][0].shape[1]), known

    found = graph.walk({each.name: (values[each.name], lengths if each.flow.sequence else None)
                        for each in graph.inputs}, step)
    return {name: each for name, (each, _) in found.items()}

