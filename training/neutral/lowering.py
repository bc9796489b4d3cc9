"""From the neutral graph to the graph of the reference, which the golden model quantizes: a function for each node."""
from functools import singledispatch

from circulant.training.neutral.building import Builder
from circulant.training.neutral.graph import Constant, Graph, Input, Move, Node
from circulant.training.neutral.streams import Stream

__all__ = ["judged", "lower", "lowered"]


def judged(graph: Graph) -> Builder:
    """The builder that has noted what there is no layer for."""
    to = lower(graph, judging=True)
    if not to.problems:
        to.check_circuit()
    return to


def lower(graph: Graph, *, judging: bool = False) -> Builder:
    """The builder of the reference, which has taken all nodes of a graph.

    Parameters:
        judging: see `Builder`; without it everything must have a layer.
    """
    to = Builder(graph, judging=judging)
    for node in graph.nodes:
        if not isinstance(node, Move):
            to.streams[node.name] = lowered(node, to) or to.fresh(node)
    for each in graph.outputs:
        to.end(each.node)
    return to


@singledispatch
def lowered(node: Node, to: Builder) -> Stream | None:
    """The stream of what a node becomes; None where it has no layer."""
    raise TypeError(f"A node must be of a class that is lowered, not {type(node).__name__}; register it here")


@lowered.register
def _(node: Input | Constant, to: Builder) -> None:
    pass
