"""Poolings by windows over images."""
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import nn

from circulant.sim.kinds.pool import FloatPool
from circulant.training.kinds.over_time import Reduce
from circulant.training.kinds.window import check_images, pads_of, rank_of, window_of, windowed
from circulant.training.neutral import Builder, Call, Node, Stream, Unsupported, Value, lowered, of_torch
from circulant.training.onnx import OnnxGraph, OnnxNode, module_of, of_onnx

__all__ = ["Pool"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Pool(Node):
    """The maximum ("max") or mean ("average") of windows over the last axes."""

    mode: str
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    over_images: ClassVar[bool] = True

    def exchanged(self) -> Node:
        return self.turned(stride=self.stride[::-1], padding=self.padding[::-1], kernel=self.kernel[::-1])


@of_torch(nn.MaxPool1d, nn.MaxPool2d, nn.AvgPool1d, nn.AvgPool2d,
          "max_pool1d", "max_pool2d", "avg_pool1d", "avg_pool2d")
def _captured(call: Call) -> Value:
    source, module = call.tensor, call.module
    rank = 2 if "2d" in call.kind else 1
    check_images(source, rank)
    names = (("kernel_size", "stride", "padding", "dilation", "ceil_mode") if "max" in call.kind.lower() else
             ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"))
    if module is not None:
        options = {name: getattr(module, name) for name in (*names, "divisor_override") if hasattr(module, name)}
    else:
        options = call.bind(*names, "divisor_override" if "avg" in call.kind else "return_indices")
    for name, rule in (("dilation", 1), ("ceil_mode", False), ("count_include_pad", True), ("divisor_override", None),
                       ("return_indices", False)):
        if options.get(name, rule) not in (rule, (rule,) * rank):
            raise Unsupported(f"{name}={options[name]!r} is not supported; only {rule!r} is")

    def each(value: Any) -> tuple[int, ...]:
        return tuple(value) if isinstance(value, Sequence) else (value,) * rank

    kernel = each(options["kernel_size"])
    stride = each(options["stride"]) if options.get("stride") else kernel
    mode = "max" if "max" in call.kind.lower() else "average"
    return call.emit(Pool, (source,), 0, mode=mode, kernel=kernel, stride=stride,
                     padding=each(options.get("padding", 0)))


@of_torch(nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d,
          "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_max_pool1d", "adaptive_max_pool2d")
def _adaptive(call: Call) -> Value:
    """A pooling to a size that divides that of the images, by windows side by side; to 1 over all pixels."""
    source = call.tensor
    rank = 2 if "2d" in call.kind else 1
    check_images(source, rank)
    given = call.module.output_size if call.module is not None else call.bind("output_size")["output_size"]
    came = source.sizes[1:]
    sizes = tuple(given) if isinstance(given, Sequence) else (given,) * rank
    sizes = tuple(size if wanted is None else wanted for size, wanted in zip(came, sizes, strict=True))
    if any(size % wanted for size, wanted in zip(came, sizes, strict=True)):
        raise Unsupported(f"the output size must divide that of the images, {came}, so that all windows are alike, not "
                          f"be {sizes}; pool by fixed windows")
    largest = "max" in call.kind.lower()
    if set(sizes) == {1}:
        return call.emit(Reduce, (source,), 0, mode="max" if largest else "mean", axes=tuple(range(2, rank + 2)),
                         keep=True)
    kernel = tuple(size // wanted for size, wanted in zip(came, sizes, strict=True))
    return call.emit(Pool, (source,), 0, mode="max" if largest else "average", kernel=kernel, stride=kernel,
                     padding=(0,) * rank)


@lowered.register
def _(node: Pool, to: Builder) -> Stream | None:
    window = window_of(node.kernel, node.stride, node.padding, (1,))
    return windowed(node, to, window, lambda name, flow: FloatPool(
        name, flow.size, flow.grid or (1, 1), window, node.mode), kind="pool")


def _module(graph: OnnxGraph, node: OnnxNode) -> nn.Module:
    options, rank = node.attributes, rank_of(graph, node)
    largest, kernel = node.op == "MaxPool", tuple(options["kernel_shape"])
    pads, _ = pads_of(graph, node, kernel)
    stride, dilation = (tuple(options.get(name, [1] * rank)) for name in ("strides", "dilations"))
    if any(2 * pad > size for pad, size in zip(pads, kernel, strict=True)):
        raise node.refused(f"its padding must be at most half of its windows {list(kernel)}, not {list(pads)}; pad "
                           "less")
    if not largest and set(dilation) != {1}:
        raise node.refused(f"dilations={list(dilation)} of an average are not supported; let windows have no gaps")
    counts = bool(options.get("count_include_pad", 0)) or not any(pads)
    made: nn.Module = getattr(nn, f"{'Max' if largest else 'Avg'}Pool{rank}d")(
        kernel, stride, pads, **{"dilation": dilation} if largest else {"count_include_pad": counts})
    return made


def _whole(graph: OnnxGraph, node: OnnxNode) -> nn.Module:
    """A pooling over all pixels."""
    kind = "Avg" if "Average" in node.op else "Max"
    made: nn.Module = getattr(nn, f"Adaptive{kind}Pool{rank_of(graph, node)}d")(1)
    return made


for names, module in ((("MaxPool", "AveragePool"), _module), (("GlobalMaxPool", "GlobalAveragePool"), _whole)):
    of_onnx(*names, module=module, becomes="pooling", conditions="as of a convolution; `ceil_mode` where it adds "
            "nothing; padding counts in a mean")(module_of)
