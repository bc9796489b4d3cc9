"""A graph seen as a chain of stages, as hardware and C build it: a stage is a layer, both directions, or the sum of two
branches of stages."""
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from circulant.sim.golden.bidirectional import Bidirectional
from circulant.sim.golden.residual import Residual
from circulant.sim.passes.layer import GoldenLayer
from circulant.sim.refusal import Refusal
from circulant.sim.shape.graph import Graph
from circulant.sim.shape.window import Flow

if TYPE_CHECKING:
    from circulant.sim.golden.network import Network

__all__ = ["Stage", "Unbuilt", "chained", "flows", "stages"]

Stage = GoldenLayer | Bidirectional | Residual

CELLS = ("gru", "lstm", "rnn")


class Unbuilt(Refusal):
    """Refusal of what no circuit is built for.

    Parameters:
        layer: the name of the layer that it is said of.
    """

    def __init__(self, text: str, layer: str) -> None:
        super().__init__(text)
        self.layer = layer


def stages(network: "Network") -> tuple[Any, ...]:
    """The stages of a network with one input and one output.

    Raises:
        Refusal: when it has more of them, or a join of a form that is not built.
    """
    def residual(layer: Any, flow: Flow, before: list[Any], body: list[Any], shortcut: list[Any]) -> Residual:
        form = before[-1].output_format if before else network.formats[network.entry.name]
        return Residual(layer.name, flow.size, flow.grid, body=tuple(body), shortcut=tuple(shortcut), input_format=form,
                        output_format=layer.output_format, relu=layer.relu)

    return chained(network, residual, Bidirectional)


def chained(graph: Graph, residual: Callable[..., Any], both: Callable[..., Any]) -> tuple[Any, ...]:
    """The stages of a graph, of a model in float64 or of its golden network.

    Parameters:
        residual: a stage from the layer of a sum, the flow of its fork, the stages before that and of both branches.
        both: a stage from a name and the layers of both directions.

    Raises:
        Refusal: as `stages`.
    """
    made = _Chain(graph, residual, both)
    found = made.to(graph.exit)
    covered = [name for stage in found for name in _names(stage)]
    if sorted(covered) != sorted(node.name for node in graph.nodes):
        twice = next(name for name in covered if covered.count(name) > 1)
        raise Unbuilt(f"A circuit is built for branches that part and meet again, but layer {twice!r} of network "
                      f"{graph.name!r} is part of two sums that cross; let each branch end in the sum of its fork",
                      twice)
    return tuple(found)


def flows(start: Flow, chain: Sequence[Any]) -> list[Flow]:
    """The flow that comes to each stage of a chain, and last the one that the chain gives."""
    found = [start]
    for stage in chain:
        found.append(_following(stage, found[-1]))
    return found


def _following(stage: Any, flow: Flow) -> Flow:
    if isinstance(stage, Residual):
        return flows(flow, stage.body or stage.shortcut)[-1]
    if isinstance(stage, Bidirectional):
        return Flow(stage.outputs, sequence=stage.returns == "sequence")
    return stage.following((flow,))


def _names(stage: Any) -> list[str]:
    """The nodes that a stage stands for."""
    if stage.kind == "bidirectional":
        return [node.name for node in stage.nodes("")]
    parts = (*stage.body, *stage.shortcut) if stage.kind == "residual" else ()
    return [*(name for each in parts for name in _names(each)), stage.name]


class _Chain:
    """The stages from the input of a graph to each of its nodes; the arguments are those of `chained`."""

    def __init__(self, graph: Graph, residual: Callable[..., Any], both: Callable[..., Any]) -> None:
        self._graph, self._nodes = graph, {node.name: node for node in graph.nodes}
        self._start, self._residual, self._both = graph.entry.name, residual, both

    def to(self, name: str) -> list[Any]:
        """The stages up to a node; none to the input."""
        if name == self._start:
            return []
        node = self._nodes[name]
        if node.layer.kind == "add":
            return self._sum(node.layer, node.sources)
        if node.layer.kind == "concat":
            return self._directions(node.layer, node.sources)
        return [*self.to(node.sources[0]), node.layer]

    def _sum(self, layer: Any, sources: Sequence[str]) -> list[Any]:
        if len(sources) != 2:
            raise Unbuilt(f"A circuit adds two branches, but layer {layer.name!r} adds {len(sources)}; add them one "
                          "after the other", layer.name)
        body, shortcut = map(self.to, sources)
        same = sum(1 for _ in _alike(body, shortcut))
        before, at = body[:same], body[same - 1].name if same else self._start
        return [*before, self._residual(layer, self._graph.flows[at], before, body[same:], shortcut[same:])]

    def _directions(self, layer: Any, sources: Sequence[str]) -> list[Any]:
        ends = [self._nodes.get(source) for source in sources]
        if len(ends) == 2 and ends[1] is not None and ends[1].layer.kind == "reverse":
            ends[1] = self._nodes.get(ends[1].sources[0])
        ahead, back = ends if len(ends) == 2 else (None, None)
        if ahead is not None and back is not None and ahead.layer.kind in CELLS and back.layer.kind in CELLS:
            turned = self._nodes.get(back.sources[0])
            if turned is not None and turned.layer.kind == "reverse" and turned.sources == ahead.sources:
                return [*self.to(ahead.sources[0]), self._both(layer.name, ahead.layer, back.layer)]
        raise Unbuilt(f"A circuit puts the outputs of both directions of a recurrent layer side by side, but layer "
                      f"{layer.name!r} joins others; leave it out", layer.name)


def _alike(one: Sequence[Any], other: Sequence[Any]) -> Any:
    """The stages that two chains have in common at their beginnings."""
    for first, second in zip(one, other, strict=False):
        if first.name != second.name:
            return
        yield first
