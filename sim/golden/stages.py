"""A graph seen as a chain of stages, as hardware and C build it: a stage is a layer, both directions, or the sum of two
branches of stages."""
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from circulant.sim.golden.bidirectional import Bidirectional
from circulant.sim.golden.residual import Residual
from circulant.sim.kinds.add import Add
from circulant.sim.kinds.cell import RecurrentLayer
from circulant.sim.kinds.concat import Concat
from circulant.sim.kinds.reverse import Reverse
from circulant.sim.passes.layer import GoldenLayer
from circulant.sim.refusal import Refusal
from circulant.sim.shape.kinds import within
from circulant.sim.shape.window import Flow

if TYPE_CHECKING:
    from circulant.sim.golden.network import Network

__all__ = ["Stage", "flows", "stages"]

Stage = GoldenLayer | Bidirectional | Residual


def stages(network: "Network") -> tuple[Any, ...]:
    """The stages of a network with one input and one output.

    Raises:
        Refusal: when it has more of them, or a join of a form that is not built.
    """
    made = _Chain(network)
    found = made.to(network.exit)
    covered = [name for stage in found for name in _names(stage)]
    if sorted(covered) != sorted(node.name for node in network.nodes):
        twice = next(name for name in covered if covered.count(name) > 1)
        raise Refusal(f"A circuit is built for branches that part and meet again, but layer {twice!r} of network "
                      f"{network.name!r} is part of two sums that cross; let each branch end in the sum of its fork")
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
    if isinstance(stage, Bidirectional):
        return [node.name for node in stage.nodes("")]
    return [*(name for each in within(stage) for name in _names(each)), stage.name]


class _Chain:
    """The stages from the input of a network to each of its nodes."""

    def __init__(self, network: "Network") -> None:
        self._network, self._nodes = network, {node.name: node for node in network.nodes}
        self._start = network.entry.name

    def to(self, name: str) -> list[Any]:
        """The stages up to a node; none to the input."""
        if name == self._start:
            return []
        node = self._nodes[name]
        if isinstance(node.layer, Add):
            return self._sum(node.layer, node.sources)
        if isinstance(node.layer, Concat):
            return self._directions(node.layer, node.sources)
        return [*self.to(node.sources[0]), node.layer]

    def _sum(self, layer: Add, sources: Sequence[str]) -> list[Any]:
        if len(sources) != 2:
            raise Refusal(f"A circuit adds two branches, but layer {layer.name!r} adds {len(sources)}; add them one "
                          "after the other")
        body, shortcut = map(self.to, sources)
        same = sum(1 for _ in _alike(body, shortcut))
        before, at = body[:same], body[same - 1].name if same else self._start
        flow = self._network.flows[at]
        form = before[-1].output_format if before else self._network.formats[self._start]
        return [*before, Residual(layer.name, flow.size, flow.grid, body=tuple(body[same:]),
                                  shortcut=tuple(shortcut[same:]), input_format=form,
                                  output_format=layer.output_format, relu=layer.relu)]

    def _directions(self, layer: Concat, sources: Sequence[str]) -> list[Any]:
        ends = [self._nodes.get(source) for source in sources]
        if len(ends) == 2 and ends[1] is not None and isinstance(ends[1].layer, Reverse):
            ends[1] = self._nodes.get(ends[1].sources[0])
        ahead, back = ends if len(ends) == 2 else (None, None)
        if ahead and back and all(isinstance(end.layer, RecurrentLayer) for end in (ahead, back)):
            turned = self._nodes.get(back.sources[0])
            if turned is not None and isinstance(turned.layer, Reverse) and turned.sources == ahead.sources:
                both = Bidirectional(layer.name, ahead.layer, back.layer)
                return [*self.to(ahead.sources[0]), both]
        raise Refusal(f"A circuit puts the outputs of both directions of a recurrent layer side by side, but layer "
                      f"{layer.name!r} joins others; leave it out")


def _alike(one: Sequence[Any], other: Sequence[Any]) -> Any:
    """The stages that two chains have in common at their beginnings."""
    for first, second in zip(one, other, strict=False):
        if first.name != second.name:
            return
        yield first
