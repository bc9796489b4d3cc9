"""Parts of a model that no kind of layers is made of, and why modules cannot be captured."""
from typing import Any

from torch import nn
from torch.nn.utils import parametrize

from circulant.training.blocks.blocks import BlockCirculant
from circulant.training.capture import axes, lookup
from circulant.training.kinds.registry import KINDS
from circulant.training.neutral import Call, Unsupported, Value, fault, of_torch
from circulant.training.neutral.forms import MODULES

__all__ = ["KINDS", "problem_of"]


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
    return fault(module) or None


@of_torch(nn.Identity, nn.Dropout, stepwise=True)
@of_torch(nn.Dropout1d, nn.Dropout2d, "contiguous", "clone", "detach", "data")
def _skip(call: Call) -> Value:
    return call.tensor


@of_torch("dropout", stepwise=True)
def _dropout(call: Call) -> Value:
    if call.bind("p", "training", "inplace", training=True)["training"]:
        raise Unsupported("dropout must be inactive in evaluation; give it training=self.training")
    return call.tensor


@of_torch(nn.Upsample, nn.UpsamplingNearest2d, "interpolate")
def _upsample(call: Call) -> Value:
    raise Unsupported("there is no unit that gives more steps or pixels than come; let the data have as many, or make "
                      "them by a Linear and a view")


for handler, forms in (
        (lookup.embedding, (nn.Embedding,)), (lookup.integer, ("long", "int")),
        (lookup.products, ("bmm", "matmul")), (axes.getitem, ("getitem",)), (axes.pack, ("pack_padded_sequence",)),
        (axes.unpack, ("pad_packed_sequence",)),
        (axes.reshape, (nn.Flatten, nn.Unflatten, "flatten", "view", "reshape", "squeeze", "unsqueeze", "unflatten",
                        "ravel", "permute", "transpose", "swapaxes", "movedim", "t", "T", "mT")),
        (axes.move, ("cat", "concat", "concatenate", "stack", "select", "narrow", "unbind", "chunk", "split", "expand",
                     "repeat", "repeat_interleave", "expand_as", "index_select", "flip"))):
    of_torch(*forms)(handler)
