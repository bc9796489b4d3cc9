"""Parts of a model: the modules and functions that can be captured, and what each of them may not do."""
from collections.abc import Callable
from typing import Any

from torch import nn
from torch.nn.utils import parametrize

from circulant.training.blocks.blocks import BlockCirculant
from circulant.training.capture import activations, axes, layers
from circulant.training.capture.call import Call, Unsupported, Value

__all__ = ["FUNCTIONS", "MODULES", "problem_of"]


def problem_of(module: nn.Module) -> str | None:
    """Why a module by itself cannot be captured, or None."""
    kind: Any = parametrize.type_before_parametrizations(module)
    if kind is nn.LayerNorm:
        return "its statistics depend on each sample; use BatchNorm1d, whose running statistics become a scale"
    if kind not in MODULES:
        return "the layer is not supported; use Linear, GRU, LSTM, a convolution or another layer of docs/models.md"
    if parametrize.is_parametrized(module):
        chains: Any = module.parametrizations
        for tensor, chained in chains.items():
            if len(chained) > 1 and any(isinstance(part, BlockCirculant) for part in chained):
                return f"{tensor} carries other parametrizations beside BlockCirculant; remove them"
    found = []
    if isinstance(module, nn.Conv1d | nn.Conv2d):
        for name, rule in (("groups", 1), ("dilation", (1,) * len(module.kernel_size)), ("padding_mode", "zeros")):
            if getattr(module, name) != rule:
                found.append(f"{name}={getattr(module, name)!r} is not supported; only {rule!r} is")
        if module.padding == "same" and not all(size % 2 for size in module.kernel_size):
            found.append("padding='same' needs odd kernels; give the padding as numbers")
    elif isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d) and module.running_var is None:
        found.append("it must keep running statistics, as those of the batch are no constants; "
                     "build it with track_running_stats=True")
    return ", ".join(found) or None


def _skip(call: Call) -> Value:
    return call.tensor


def _add(call: Call) -> Value:
    if call.kwargs.get("alpha", 1) != 1:
        raise Unsupported(f"alpha={call.kwargs['alpha']!r} is not supported; leave it out")
    first, other = call.tensor, call.sources[-1]
    if len(call.sources) != 2 or other.kind != "tensor":
        raise Unsupported("add: it must sum two tensors of the model, not a constant")
    if (first.axes, first.sizes) != (other.axes, other.sizes):
        raise Unsupported(f"it must sum two tensors of one shape, not {first.sizes} and {other.sizes}; broadcasting is "
                          "not supported")
    return call.emit("add", (first.node, other.node), first.axes)


def _dropout(call: Call) -> Value:
    if call.bind("p", "training", "inplace", training=True)["training"]:
        raise Unsupported("dropout must be inactive in evaluation; give it training=self.training")
    return call.tensor


Handler = Callable[[Call], Value]

MODULES: dict[type[nn.Module], Handler] = {
    **activations.MODULES,
    nn.Linear: layers.linear, nn.Conv1d: layers.conv, nn.Conv2d: layers.conv,
    **dict.fromkeys(layers.RECURRENT, layers.recurrent),
    nn.BatchNorm1d: layers.batch_norm, nn.BatchNorm2d: layers.batch_norm,
    **dict.fromkeys((nn.MaxPool1d, nn.MaxPool2d, nn.AvgPool1d, nn.AvgPool2d), layers.pool),
    **dict.fromkeys((nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d),
                    layers.adaptive),
    nn.Flatten: axes.reshape,
    **dict.fromkeys((nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d), _skip),
}
"""By class of the module."""

FUNCTIONS: dict[str, Handler] = {
    **activations.FUNCTIONS, "contiguous": _skip, "getitem": axes.getitem, "cat": axes.cat, "mean": axes.mean,
    "max": axes.maximum, "amax": axes.maximum, "getattr": axes.attribute,
    "permute": axes.permute, "transpose": axes.permute, "dropout": _dropout,
    **dict.fromkeys(("add", "add_", "iadd"), _add),
    **dict.fromkeys(("flatten", "view", "reshape", "squeeze", "unsqueeze"), axes.reshape),
    **dict.fromkeys(("max_pool1d", "max_pool2d", "avg_pool1d", "avg_pool2d"), layers.pool),
    **dict.fromkeys(("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_max_pool1d", "adaptive_max_pool2d"),
                    layers.adaptive),
}
"""By name of the function or method."""
