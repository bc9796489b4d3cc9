"""A graph seen as stages, as hardware and C build it: a stage is a layer, both directions, or a sum of two branches of
stages.

Where branches part and meet one within the other, the stages are a chain, each behind the one before. Else each layer
is a stage of its own, and takes those that it takes in the graph.
"""
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from circulant.sim.golden.bidirectional import Bidirectional
from circulant.sim.golden.residual import Residual
from circulant.sim.passes.layer import GoldenLayer
from circulant.sim.refusal import Refusal
from circulant.sim.shape.graph import Graph, Node
from circulant.sim.shape.layer import Held
from circulant.sim.shape.window import Flow

if TYPE_CHECKING:
    from circulant.sim.golden.network import Network

__all__ = ["INPUT", "Stage", "Stages", "Unbuilt", "arranged", "flows", "stages"]

Stage = GoldenLayer | Bidirectional | Residual

INPUT = -1
"""The number of the network's first input among the sources of a stage; those of the others are below it."""


class Unbuilt(Refusal):
    """Refusal of what no circuit is built for.

    Parameters:
        layer: the name of the layer that it is said of.
    """

    def __init__(self, text: str, layer: str) -> None:
        super().__init__(text)
        self.layer = layer


@dataclass(frozen=True, eq=False)
class Stages:
    """The stages of a network, in topological order.

    Parameters:
        sources: of each the numbers of the stages that it takes, `INPUT` and below for the network's inputs.
        come: of each the flow of what comes; of a join that of each of its sources is alike but for the size.
        outputs: the numbers of the stages that are outputs; none of a part of a network.
    """

    each: tuple[Any, ...]
    sources: tuple[tuple[int, ...], ...]
    come: tuple[Flow, ...]
    outputs: tuple[int, ...] = ()

    @cached_property
    def late(self) -> list[bool]:
        """Whether the first step, or pixel, that a stage gives comes when the last one has gone in."""
        found: list[bool] = []
        ended: list[bool] = []  # Whether what it gives depends on steps or pixels, and so as a vector on all of them.
        for stage, sources, come in zip(self.each, self.sources, self.come, strict=True):
            before = [source > INPUT and ended[source] for source in sources]
            waits = stage.keeps or (isinstance(stage, Held) and before[1])
            found.append(getattr(stage, "returns", "sequence") != "last" and (
                waits or any(source > INPUT and found[source] for source in sources)))
            ended.append(come.sequence or come.grid is not None or any(before))
        return found

    def waiting(self, at: int) -> list[bool]:
        """For each source of a stage whether whole samples of it wait, for a vector or for steps that come late."""
        late, stage = [source > INPUT and self.late[source] for source in self.sources[at]], self.each[at]
        if isinstance(stage, Held):
            return [not stage.counts, False]
        return [self.come[at].sequence and any(late) and not each for each in late]

    @property
    def keeps(self) -> bool:
        """Whether whole sequences are kept, and so none of more than a given number of steps."""
        return any(stage.keeps or (self.come[n].sequence and any(self.waiting(n)))
                   for n, stage in enumerate(self.each))

    @property
    def chain(self) -> bool:
        """Whether each stage takes the one before, and the last one alone is an output."""
        return len(self.outputs) < 2 and self.sources == tuple((n - 1,) for n in range(len(self.each)))

    def readers(self, at: int) -> list[int]:
        """The numbers of the stages that take a stage, or an input; one that takes it twice stands there twice."""
        return [n for n, sources in enumerate(self.sources) for source in sources if source == at]

    def beside(self, at: int) -> list[int]:
        """For each source of a join how many stages a vector passes through, at the most, on the way from where the
        branches part to another source: while it does, what the source gives must wait. All inputs come at once."""
        before: list[set[int]] = []  # By stage those that every way to it passes, and itself.
        for n, sources in enumerate(self.sources):
            common = set.intersection(*({INPUT} if source <= INPUT else before[source] for source in sources))
            before.append(common | {n})
        ways = [{INPUT} if source <= INPUT else before[source] for source in self.sources[at]]
        fork = max(set.intersection(*ways))
        lengths = [self._longest(fork, source) for source in self.sources[at]]
        return [max(lengths[:n] + lengths[n + 1:]) for n in range(len(lengths))]

    def _longest(self, fork: int, to: int) -> int:
        """Stages of the longest way behind one stage up to another."""
        return 0 if to == fork or to <= INPUT else 1 + max(self._longest(fork, source) for source in self.sources[to])


def stages(network: "Network") -> Stages:
    """The stages of a network.

    Raises:
        Refusal: when it has a join of a form that is not built.
    """
    def residual(layer: Any, flow: Flow, before: list[Any], body: list[Any], shortcut: list[Any]) -> Residual:
        form = before[-1].output_format if before else network.input_format
        return Residual(layer.name, flow.size, flow.grid, body=tuple(body), shortcut=tuple(shortcut), input_format=form,
                        output_format=layer.output_format, relu=layer.relu)

    return arranged(network, residual, Bidirectional)


def arranged(graph: Graph, residual: Callable[..., Any], both: Callable[..., Any]) -> Stages:
    """The stages of a graph, of a model in float64 or of its golden network.

    Parameters:
        residual: a stage from the layer of a sum, the flow of its fork, the stages before that and of both branches.
        both: a stage from a name and the layers of both directions.

    Raises:
        Refusal: as `stages`; an `Unbuilt` where it is one of a layer.
    """
    whole = _Chain(graph, residual, both)
    if len(graph.inputs) > 1 or len(graph.outputs) > 1:
        return _apart(graph, whole)
    try:
        for node in graph.nodes:  # In their order, so that long chains take no deep recursion.
            whole.to(node.name)
        found = whole.to(graph.exit)
        covered = [name for stage in found for name in _names(stage)]
        if sorted(covered) == sorted(node.name for node in graph.nodes):
            sources = tuple((n - 1,) for n in range(len(found)))
            return Stages(tuple(found), sources, tuple(flows(graph.flow, found)[:-1]), (len(found) - 1,))
    except _NoChain:
        pass
    return _apart(graph, whole)


def _apart(graph: Graph, whole: "_Chain") -> Stages:
    """Each layer as a stage of its own, both directions as one."""
    made = {each.name: INPUT - n for n, each in enumerate(graph.inputs)}
    each: list[Any] = []
    sources: list[tuple[int, ...]] = []
    pairs = {node.name: pair for node in graph.nodes if (pair := whole.pair(node)) is not None}
    inner = {name for stage, _ in pairs.values() for name in _names(stage)[:-1]}
    come: list[Flow] = []
    for node in graph.nodes:
        if node.name in inner:
            continue
        stage, taken = pairs.get(node.name, (node.layer, node.sources))
        if node.layer.joins and not isinstance(node.layer, Held) and graph.flows[node.name].grid is not None:
            raise Unbuilt(f"A circuit adds images whose branches part and meet one within the other, but layer "
                          f"{node.name!r} of network {graph.name!r} joins others; let each branch end in the sum of "
                          "its fork", node.name)
        made[node.name] = len(each)
        each.append(stage)
        sources.append(tuple(made[name] for name in taken))
        come.append(graph.flows[taken[0]])
    return Stages(tuple(each), tuple(sources), tuple(come), tuple(made[name] for name in graph.outputs))


def flows(start: Flow, chain: Sequence[Any]) -> list[Flow]:
    """The flow that comes to each stage of a chain, and last the one that the chain gives."""
    found = [start]
    for stage in chain:
        found.append(_following(stage, found[-1]))
    return found


def _following(stage: Any, flow: Flow) -> Flow:
    if stage.kind == "residual":
        return flows(flow, stage.body or stage.shortcut)[-1]
    if stage.kind == "bidirectional":
        return Flow(stage.outputs, sequence=stage.returns == "sequence")
    following: Flow = stage.following((flow,))
    return following


def _parts(stage: Any) -> tuple[Any, ...]:
    """The stages of both branches of a sum; none of another stage."""
    return (*stage.body, *stage.shortcut) if stage.kind == "residual" else ()


def _names(stage: Any) -> list[str]:
    """The nodes that a stage stands for."""
    if stage.kind == "bidirectional":
        return [node.name for node in stage.nodes("")]
    return [*(name for each in _parts(stage) for name in _names(each)), stage.name]


def _within(branch: Sequence[Any]) -> Iterator[Any]:
    """The layers of a branch, and of the branches within it."""
    for stage in branch:
        yield from _within(_parts(stage)) if stage.kind == "residual" else (stage,)


class _NoChain(Exception):
    """A join is none of those that stand in a chain."""


class _Chain:
    """The stages from the input of a graph to each of its nodes; the arguments are those of `arranged`."""

    def __init__(self, graph: Graph, residual: Callable[..., Any], both: Callable[..., Any]) -> None:
        self._graph, self._nodes = graph, {node.name: node for node in graph.nodes}
        self._start, self._residual, self._both = graph.inputs[0].name, residual, both
        self._known: dict[str, list[Any]] = {self._start: []}  # Of each node once: a sum asks for both its branches.

    def to(self, name: str) -> list[Any]:
        """The stages up to a node; none to the input.

        Raises:
            _NoChain: when there is another join than the sum of two branches or that of both directions.
        """
        if name not in self._known:
            self._known[name] = self._stages(self._nodes[name])
        return self._known[name]

    def _stages(self, node: Node) -> list[Any]:
        if node.layer.kind == "add":
            return self._sum(node.layer, node.sources)
        if (pair := self.pair(node)) is not None:
            return [*self.to(pair[1][0]), pair[0]]
        if node.layer.joins:
            raise _NoChain
        return [*self.to(node.sources[0]), node.layer]

    def pair(self, node: Node) -> tuple[Any, tuple[str]] | None:
        """Both directions, and their source, where a node puts them side by side."""
        ends = [self._nodes.get(source) for source in node.sources]
        if node.layer.kind != "concat" or len(ends) != 2:
            return None
        ahead, back = ends
        if back is not None and back.layer.kind == "reverse":
            back = self._nodes.get(back.sources[0])
        if ahead is None or back is None or not (ahead.layer.recurrent and back.layer.recurrent):
            return None
        turned = self._nodes.get(back.sources[0])
        if turned is None or turned.layer.kind != "reverse" or turned.sources != ahead.sources:
            return None
        try:
            found = self._both(node.name, ahead.layer, back.layer)
        except Refusal:
            return None
        inner = _names(found)[:-1]
        alone = all(name in self._nodes and len(self._graph.readers[name]) == 1 and name not in self._graph.outputs
                    for name in inner)
        return (found, (ahead.sources[0],)) if alone else None

    def _sum(self, layer: Any, sources: Sequence[str]) -> list[Any]:
        if len(sources) != 2:
            raise _NoChain
        body, shortcut = map(self.to, sources)
        same = sum(1 for _ in _alike(body, shortcut))
        if same == len(body) == len(shortcut):
            raise _NoChain  # The sum of a layer and itself.
        before, at = body[:same], body[same - 1].name if same else self._start
        flow = self._graph.flows[at]
        if flow.grid is None and not all(getattr(each, "stepwise", False)
                                         for branch in (body, shortcut) for each in _within(branch[same:])):
            raise _NoChain
        return [*before, self._residual(layer, flow, before, body[same:], shortcut[same:])]


def _alike(one: Sequence[Any], other: Sequence[Any]) -> Iterator[Any]:
    """The stages that two chains have in common at their beginnings."""
    for first, second in zip(one, other, strict=False):
        if first.name != second.name:
            return
        yield first
