"""Parts of a model: the modules and functions that can be captured, and what each of them may not do."""
from collections.abc import Callable
from typing import Any

from torch import nn
from torch.nn.utils import parametrize

from circulant.training.blocks.blocks import BlockCirculant
from circulant.training.capture import activations, arithmetic, axes, layers
from circulant.training.capture.call import Call, Unsupported, Value
from circulant.training.capture.cells import cell
from circulant.training.capture.lookup import embedding, integer, products
from circulant.training.capture.loops import CELLS
from circulant.training.models.scans import Blend, ComplexRecurrence, DiagonalRecurrence

__all__ = ["FUNCTIONS", "MODULES", "problem_of"]


def problem_of(module: nn.Module) -> str | None:
    """Why a module by itself cannot be captured, or None."""
    kind: Any = parametrize.type_before_parametrizations(module)
    if kind is nn.MultiheadAttention:
        return ("attention has products of two streams of a whole sequence, for which there is no unit; use a GRU, a "
                "causal Conv1d, or a minGRU")
    if kind not in MODULES:
        return "the layer is not supported; use Linear, GRU, LSTM, a convolution or another layer of docs/models.md"
    if parametrize.is_parametrized(module):
        chains: Any = module.parametrizations
        for tensor, chained in chains.items():
            if len(chained) > 1 and any(isinstance(part, BlockCirculant) for part in chained):
                return f"{tensor} carries other parametrizations beside BlockCirculant; remove them"
    found = []
    if isinstance(module, nn.Conv1d | nn.Conv2d):
        if module.padding_mode != "zeros":
            found.append(f"padding_mode={module.padding_mode!r} is not supported; only 'zeros' is")
        if module.padding == "same" and not all(size % 2 for size in module.kernel_size):
            found.append("padding='same' needs odd kernels; give the padding as numbers")
    elif isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d) and module.running_var is None:
        found.append("it must keep running statistics, as those of the batch are no constants; "
                     "build it with track_running_stats=True")
    return ", ".join(found) or None


def _skip(call: Call) -> Value:
    return call.tensor


def _dropout(call: Call) -> Value:
    if call.bind("p", "training", "inplace", training=True)["training"]:
        raise Unsupported("dropout must be inactive in evaluation; give it training=self.training")
    return call.tensor


def _upsample(call: Call) -> Value:
    raise Unsupported("there is no unit that gives more steps or pixels than come; let the data have as many, or make "
                      "them by a Linear and a view")


Handler = Callable[[Call], Value | list[Value]]

MODULES: dict[type[nn.Module], Handler] = {
    **activations.MODULES,
    nn.Linear: layers.linear, nn.Embedding: embedding, nn.Conv1d: layers.conv, nn.Conv2d: layers.conv,
    **dict.fromkeys(layers.RECURRENT, layers.recurrent), **dict.fromkeys(CELLS, cell),
    nn.LayerNorm: layers.norm, nn.RMSNorm: layers.norm, nn.ConstantPad1d: layers.pad, nn.ZeroPad1d: layers.pad,
    Blend: layers.blend, DiagonalRecurrence: layers.diagonal, ComplexRecurrence: layers.diagonal,
    nn.BatchNorm1d: layers.batch_norm, nn.BatchNorm2d: layers.batch_norm,
    **dict.fromkeys((nn.MaxPool1d, nn.MaxPool2d, nn.AvgPool1d, nn.AvgPool2d), layers.pool),
    **dict.fromkeys((nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d),
                    layers.adaptive),
    **dict.fromkeys((nn.Flatten, nn.Unflatten), axes.reshape), nn.GLU: arithmetic.glu,
    **dict.fromkeys((nn.Upsample, nn.UpsamplingNearest2d), _upsample),
    **dict.fromkeys((nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d), _skip),
}
"""By class of the module."""

FUNCTIONS: dict[str, Handler] = {
    **activations.FUNCTIONS, **arithmetic.FUNCTIONS, "glu": arithmetic.glu,
    **dict.fromkeys(("long", "int"), integer), **dict.fromkeys(("bmm", "matmul"), products),
    "mean": axes.mean, "dropout": _dropout, "interpolate": _upsample, "pad": layers.pad, "getitem": axes.getitem,
    "pack_padded_sequence": axes.pack, "pad_packed_sequence": axes.unpack,
    **dict.fromkeys(("max", "amax"), axes.maximum), "sum": axes.total,
    **dict.fromkeys(("contiguous", "clone", "detach", "data"), _skip),
    **dict.fromkeys(("flatten", "view", "reshape", "squeeze", "unsqueeze", "unflatten", "ravel"), axes.reshape),
    **dict.fromkeys(("permute", "transpose", "swapaxes", "movedim", "t", "T", "mT"), axes.reshape),
    **dict.fromkeys(("cat", "concat", "concatenate", "stack", "select", "narrow", "unbind", "chunk", "split", "expand",
                     "repeat", "repeat_interleave", "expand_as", "index_select", "flip"),
                    axes.move),
    **dict.fromkeys(("max_pool1d", "max_pool2d", "avg_pool1d", "avg_pool2d"), layers.pool),
    **dict.fromkeys(("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_max_pool1d", "adaptive_max_pool2d"),
                    layers.adaptive),
}
"""By name of the function, method or attribute."""
