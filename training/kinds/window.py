"""Windows over images: what convolutions and poolings share."""
from collections.abc import Callable

from circulant.sim.real.float_model import Stage
from circulant.sim.refusal import Refusal
from circulant.sim.shape.window import Flow, Window
from circulant.training.neutral import Builder, Node, Stream, Unsupported, Value
from circulant.training.neutral.streams import Form
from circulant.training.onnx import OnnxGraph, OnnxNode, padding_of

__all__ = ["check_images", "pads_of", "rank_of", "window_of", "windowed"]


def check_images(source: Value, rank: int) -> None:
    """Check that a value is images of so many axes."""
    if source.rank != rank + 2 or source.batch != 0:
        shape = "(N, channels, length)" if rank == 1 else "(N, channels, height, width)"
        raise Unsupported(f"it must take {shape}, not {source.rank} axes with the batch on axis {source.batch}; "
                          "transpose or unsqueeze")


def window_of(*sizes: tuple[int, ...]) -> Window:
    """The window of a kernel, a stride, a padding and a dilation, each for one axis or two."""
    return Window(*((size[0], size[1] if len(size) > 1 else one) for size, one in zip(
        sizes, (1, 1, 0, 1), strict=True)))


def windowed(node: Node, to: Builder, window: Window, make: Callable[[str, Flow], Stage], *, rows: int = 0,
             kind: str = "conv") -> Stream | None:
    """The stream of a layer that moves a window over images; it gives ``rows`` channels, or those that come."""
    source = to.taken(node, images=True)
    flow = source.form.flow
    assert flow is not None and flow.grid is not None
    try:
        after = window.outputs(node.name, flow.grid)
    except Refusal as refusal:
        to.problem(node.name, str(refusal))
        return None
    return to.give(node.name, kind, source, make, Form.of(Flow(rows or flow.size, after)))


def pads_of(graph: OnnxGraph, node: OnnxNode, kernel: tuple[int, ...]) -> tuple[tuple[int, ...], bool]:
    """The padding of each axis, which is alike on both sides, or as good as that where no window reaches the end; or
    the zeros in front of a causal convolution over time, and that it is one."""
    options, rank = node.attributes, len(kernel)
    strides, gaps = (options.get(name, [1] * rank) for name in ("strides", "dilations"))
    spans = [(size - 1) * gap + 1 for size, gap in zip(kernel, gaps, strict=True)]
    sizes, results = (graph.shapes[name][2:] for name in (node.inputs[0], node.outputs[0]))
    auto, pads = options.get("auto_pad", "NOTSET"), list(options.get("pads", [0] * 2 * rank))
    if auto != "NOTSET":
        due = [0 if auto == "VALID" else max(0, (result - 1) * stride + span - size)
               for result, stride, span, size in zip(results, strides, spans, sizes, strict=True)]
        before = [(each + (auto == "SAME_LOWER")) // 2 for each in due]
        pads = [*before, *(each - first for each, first in zip(due, before, strict=True))]
    source = graph.source(node)
    if source is not None and (more := padding_of(graph, source)):
        pads = [a + b for a, b in zip(pads, more, strict=True)]
        sizes = graph.shapes[source.inputs[0]][2:]
    if node.op == "Conv" and rank == 1 and kernel[0] > 1 and pads == [spans[0] - 1, 0]:
        return (spans[0] - 1,), True
    if min(results) < 1:
        raise node.refused(f"its windows {list(kernel)} must fit into the images, which are {list(sizes)}; give "
                           "larger ones")
    if any((size + 2 * pad - span) // stride + 1 != result for size, pad, span, stride, result in zip(
            sizes, pads, spans, strides, results, strict=False)):
        raise node.refused("ceil_mode=1 adds windows beyond the edge; leave it out" if options.get("ceil_mode") else
                           f"its padding must be alike on both sides, not {pads}; pad both sides")
    return tuple(pads[:rank]), False


def rank_of(graph: OnnxGraph, node: OnnxNode) -> int:
    """Axes of the images of a node."""
    rank = len(graph.shapes[node.inputs[0]]) - 2
    if rank not in (1, 2):
        raise node.refused(f"it must take images of one or two axes, not of {rank}; reshape them")
    return rank
