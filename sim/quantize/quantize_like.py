"""From float64 to integers in the formats that another network has, so that both fit the same circuit."""
from circulant.sim.golden.network import Network
from circulant.sim.passes.bases import quantize_layer_like
from circulant.sim.quantize.structure import check_structure, wiring
from circulant.sim.real import float_model
from circulant.sim.refusal import Refusal
from circulant.sim.shape.graph import Graph, Node

__all__ = ["quantize_like"]


def quantize_like(model: float_model.Model, rule: Network) -> Network:
    """The golden model of ``model`` in the formats and with the activation tables of ``rule``.

    Weights and biases must fit these formats. What comes of the data may saturate where that of ``rule`` would not:
    `circulant.sim.error.ranges.analyse` tells.

    Raises:
        Refusal: when the two are not of the same structure, or a weight or a bias does not fit.
    """
    given, due = wiring(model), wiring(rule)
    if given != due:
        raise Refusal(f"Network {model.name!r} must have the layers of {rule.name!r}, {_kinds(rule)}, not "
                      f"{_kinds(model)}; quantize it with formats of its own")
    nodes = tuple(Node(quantize_layer_like(like, layer), node.sources)
                  for like, layer, node in zip(rule.layers, model.layers, model.nodes, strict=True))
    network = Network(model.name, model.inputs, nodes, model.outputs, ragged=rule.ragged)
    check_structure(rule, network)
    return network


def _kinds(graph: Graph) -> list[str]:
    return [layer.kind for layer in graph.layers]
