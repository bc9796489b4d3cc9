"""How the layers that hold weights or windows become nodes of the neutral graph, or why they cannot."""
from collections.abc import Sequence
from typing import Any, TypedDict

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from circulant.sim.arith.fixed import Format
from circulant.training.blocks.blocks import BlockCirculant
from circulant.training.blocks.matrices import Matrix, constraint_of
from circulant.training.capture.call import HIDDEN, Call, Unsupported, Value
from circulant.training.capture.graph import (
    Blend,
    CausalConv,
    CausalDepthwise,
    Conv,
    Decay,
    Depthwise,
    Linear,
    Norm,
    Pool,
    Recurrent,
    Reduce,
    Scale,
)
from circulant.training.capture.simplify import ends
from circulant.training.models.cells import LinearRnn, PeepholeLstm, ResetBeforeGru
from circulant.training.models.quantizer import grids_of
from circulant.training.models.scans import ComplexRecurrence

__all__ = ["RECURRENT", "Padded", "adaptive", "batch_norm", "blend", "conv", "diagonal", "linear", "norm", "pad",
           "pool", "recurrent"]

RECURRENT = (nn.GRU, nn.LSTM, nn.RNN, PeepholeLstm, ResetBeforeGru, LinearRnn)


def linear(call: Call) -> Value:
    """A Linear over the last axis."""
    source, module = call.tensor, call.module
    if source.batch == source.rank - 1:
        raise Unsupported("it must work on the features, not on the batch; move the axes")
    return call.emit(Linear, (source,), source.batch, **_weights(module))


def conv(call: Call) -> Value:
    """A Conv1d or Conv2d."""
    source, module = call.tensor, call.module
    rank = len(module.kernel_size)
    if isinstance(source, Padded) and rank == 1:
        return _causal(call, source)
    _check_images(source, rank)
    padding = module.padding
    if isinstance(padding, str):
        padding = tuple(size // 2 * gap if padding == "same" else 0 for size, gap in zip(
            module.kernel_size, module.dilation, strict=True))
    window = {"stride": tuple(module.stride), "padding": tuple(padding), "dilation": tuple(module.dilation)}
    if module.groups == module.in_channels == module.out_channels > 1:
        weight = module.weight.detach().flatten(1).T
        return call.emit(Depthwise, (source,), 0, weight=weight, bias=_bias(module, weight), grid=_grid(module),
                         kernel=tuple(module.kernel_size), **window)
    return call.emit(Conv, (source,), 0, **_weights(module), **window, groups=module.groups)


OVER_STEPS = Linear, Norm, Recurrent, CausalConv, CausalDepthwise, Blend, Decay
"""Nodes that give vectors step by step, where they give no single vector."""



class Padded(Value):
    """Value with zeros in front of its steps, which only a causal convolution takes.

    Members:
        before: the value without them.
        count: of the zeros.
    """

    before: Value
    count: int

    @classmethod
    def of(cls, before: Value, count: int) -> "Padded":
        assert before.places is not None
        zeros = torch.full((*before.sizes[:-1], count), HIDDEN)
        made = cls(torch.cat((zeros, before.places), -1), before.batch, before.path, refused=(
            "zeros in front of steps need a Conv1d behind them that reaches back over all of them"))
        object.__setattr__(made, "before", before)
        object.__setattr__(made, "count", count)
        return made


def pad(call: Call) -> Value:
    """Zeros in front of the steps of (N, channels, steps)."""
    source = call.tensor
    if call.module is None:
        given = call.bind("pad", "mode", "value", mode="constant", value=None)
        sides, plain = tuple(given["pad"]), given["mode"] == "constant" and not given["value"]
    else:
        sides, plain = tuple(call.module.padding), not getattr(call.module, "value", 0)
    if not plain or source.rank != 3 or source.batch or len(sides) != 2 or sides[1] or sides[0] < 0:
        raise Unsupported("only zeros in front of the steps of (N, channels, steps) are supported, for a causal Conv1d "
                          "behind them; give other layers their padding")
    return Padded.of(source, sides[0]) if sides[0] else source


def _causal(call: Call, source: Value) -> Value:
    """A Conv1d whose outputs know no later steps; with a stride over an image of one column, where behind its kernel
    stand as many positions of zeros as it reaches back, which padding alike on both sides asks for."""
    module = call.module
    if isinstance(module.padding, str) or any(module.padding):
        raise Unsupported("a causal Conv1d must have no padding but the zeros in front of it; set its own to 0")
    assert isinstance(source, Padded)
    if source.count != (module.kernel_size[0] - 1) * module.dilation[0]:
        raise Unsupported(f"it must have as many zeros in front of it as it reaches back, "
                          f"{(module.kernel_size[0] - 1) * module.dilation[0]}, not {source.count}; pad by that")
    if module.stride != (1,) and (steps := [name for name, kind in call.before(source.before) if kind in OVER_STEPS]):
        raise Unsupported(f"a causal Conv1d with a stride takes whole sequences, and cannot stand behind {steps[0]}, "
                          f"which gives one step after the other; put it in front of {steps[-1]}, or give it a stride "
                          "of 1")
    if module.groups == module.in_channels == module.out_channels > 1 and _grid(module) is None:
        weight = module.weight.detach().flatten(1).T
        if module.stride != (1,):
            return call.emit(Depthwise, (source.before,), 0, weight=_both_sides(weight), bias=_bias(module, weight),
                             kernel=(2 * len(weight) - 1,), **_strided(module, source.count))
        return call.emit(CausalDepthwise, (source.before,), 0, weight=weight, bias=_bias(module, weight),
                         dilation=module.dilation[0])
    found = _weights(module)
    if module.stride != (1,):
        own = found["constraint"]
        wider = BlockCirculant(own.rows, own.columns, own.block_size, kernel=(2 * own.kernel[0] - 1,))
        return call.emit(Conv, (source.before,), 0, **found | {"first": _both_sides(found["first"]),
                                                               "constraint": wider}, **_strided(module, source.count))
    return call.emit(CausalConv, (source.before,), 0, **found, dilation=module.dilation[0])


def _both_sides(weight: Tensor) -> Tensor:
    """Weights (positions, …) with zeros behind the newest one, as many as there are older ones."""
    return torch.cat((weight, torch.zeros_like(weight[1:])))


def _strided(module: Any, reach: int) -> dict[str, tuple[int, ...]]:
    return {"stride": module.stride, "padding": (reach,), "dilation": module.dilation}


def norm(call: Call) -> Value:
    """A LayerNorm or an RMSNorm over the last axis."""
    source, module = call.tensor, call.module
    if source.batch == source.rank - 1 or len(module.normalized_shape) != 1:
        raise Unsupported("it must normalise the features, the last axis alone; give it their number")
    size, mode = module.normalized_shape[0], "layer" if isinstance(module, nn.LayerNorm) else "rms"
    weight, bias = module.weight, getattr(module, "bias", None)
    epsilon = torch.finfo(torch.float32).eps if module.eps is None else module.eps
    return call.emit(Norm, (source,), source.batch, mode=mode, epsilon=float(epsilon),
                     gain=torch.ones(size) if weight is None else weight.detach(),
                     shift=torch.zeros(size) if bias is None else bias.detach())


def blend(call: Call) -> Value:
    """A `circulant.training.models.scans.Blend`."""
    pair = call.given
    if len(pair) != 2 or not all(isinstance(each, Value) for each in pair):
        raise Unsupported("it must take two sequences that depend on the input, gates and values")
    for source in pair:
        _check_steps(source)
    if pair[0].sizes != pair[1].sizes:
        raise Unsupported(f"it must take two sequences of one shape, not {pair[0].sizes} and {pair[1].sizes}; "
                          "broadcasting is not supported")
    return call.emit(Blend, pair, 0)


def diagonal(call: Call) -> Value:
    """A `circulant.training.models.scans.DiagonalRecurrence` or a `ComplexRecurrence`."""
    source, module = call.tensor, call.module
    gain, factors, turns = module.gamma_log.detach().double().exp(), module.factors.detach(), None
    if isinstance(module, ComplexRecurrence):
        number = torch.polar(factors.double(), module.theta.detach().double())
        gain, factors, turns = gain.repeat_interleave(2), number.real, number.imag
    _check_steps(source)
    given = call.emit(Scale, (source,), 0, part="input", scale=gain, shift=torch.zeros_like(gain), axis=2)
    return call.emit(Decay, (given,), 0, factors=factors, turns=turns)


def _check_steps(source: Value) -> None:
    if source.rank != 3 or source.batch:
        raise Unsupported(f"it must take (N, T, size), not {source.rank} axes with the batch on axis {source.batch}; "
                          "transpose or unsqueeze")


class Weights(TypedDict):
    """First columns of a Linear or a convolution, their constraint, the bias and the grid of the integers."""

    first: Tensor
    constraint: BlockCirculant
    bias: Tensor
    grid: Format | None


def _weights(module: Any) -> Weights:
    """The weights of a module, with zeros between its groups."""
    weight, groups = module.weight.detach(), getattr(module, "groups", 1)
    if groups > 1:
        whole = weight.new_zeros(len(weight), module.in_channels, *weight.shape[2:])
        for n, (part, own) in enumerate(zip(whole.chunk(groups), weight.chunk(groups), strict=True)):
            part[:, n * own.shape[1]:(n + 1) * own.shape[1]] = own
        weight = whole
    rows, columns, *kernel = weight.shape
    matrix = Matrix(module, "weight", groups=1, rows=rows, columns=columns, kernel=tuple(kernel))
    if constraint := constraint_of(matrix):
        first = module.parametrizations.weight.original.detach()
    else:
        constraint = matrix.constraint(1)
        first = constraint.right_inverse(weight)
    return {"first": first, "constraint": constraint, "bias": _bias(module, first), "grid": _grid(module)}


def _bias(module: Any, like: Tensor) -> Tensor:
    bias: Tensor = like.new_zeros(len(module.weight)) if module.bias is None else module.bias.detach()
    return bias


def _grid(module: Any) -> Format | None:
    return grids_of(module).get("weight")


def _check_images(source: Value, rank: int) -> None:
    if source.rank != rank + 2 or source.batch != 0:
        shape = "(N, channels, length)" if rank == 1 else "(N, channels, height, width)"
        raise Unsupported(f"it must take {shape}, not {source.rank} axes with the batch on axis {source.batch}; "
                          "transpose or unsqueeze")


def recurrent(call: Call) -> list[Value]:
    """A layer of `RECURRENT`, all its layers and directions: its steps, h_n, and c_n of an LSTM.

    The states of the upper layer are values of its steps.
    """
    source, module = call.tensor, call.module
    if any(isinstance(each, Value) or bool(each.any()) for given in call.given[1:] if given is not None
           for each in (given if isinstance(given, tuple | list) else (given,))):
        raise Unsupported("an initial state is not supported; leave it out, it is zero then")
    if source.rank != 3:
        raise Unsupported("it must take a sequence (N, T, inputs), not a vector of each; give it all steps")
    packed = isinstance(call.result, tuple) and isinstance(call.result[0], PackedSequence)
    if source.batch != (0 if module.batch_first or packed else 1):
        wanted = "(N, T, inputs)" if module.batch_first else "(T, N, inputs)"
        raise Unsupported(f"it must take {wanted} with batch_first={module.batch_first}, but the batch comes on axis "
                          f"{source.batch}; build it with batch_first={not module.batch_first}, or transpose the axes "
                          "before it")
    shape = (None, source.sizes[0], call.result[0].data.shape[-1]) if packed else ()
    steps = call.emit(Recurrent, (source,), source.batch, shape=shape, module=module)
    assert steps.places is not None
    ways = 1 + bool(module.bidirectional)
    upper = steps.places.flatten()[ends(steps.sizes, ways)].view(ways, -1)
    lower = torch.full(((module.num_layers - 1) * ways, upper.shape[1]), HIDDEN)
    cells = torch.full((module.num_layers * ways, module.hidden_size), HIDDEN)
    return [steps, Value(torch.cat((lower, upper)), 1), Value(cells, 1)]


def batch_norm(call: Call) -> Value:
    """A batch normalisation with its running statistics, as a scale and shift for each channel."""
    source, module = call.tensor, call.module
    if source.rank < 2 or source.batch != 0:
        raise Unsupported("it must take the batch on axis 0 and the channels on axis 1; transpose the axes")
    scale: Tensor = (module.running_var + module.eps).rsqrt()
    if module.affine:
        scale = scale * module.weight.detach()
    shift = -module.running_mean * scale + (module.bias.detach() if module.affine else 0)
    return call.emit(Scale, (source,), 0, scale=scale, shift=shift, axis=1)


def pool(call: Call) -> Value:
    """A pooling by windows, as module or function."""
    source, module = call.tensor, call.module
    rank = 2 if "2d" in call.kind else 1
    _check_images(source, rank)
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


def adaptive(call: Call) -> Value:
    """A pooling to a size that divides that of the images, by windows side by side; to 1 over all pixels."""
    source = call.tensor
    rank = 2 if "2d" in call.kind else 1
    _check_images(source, rank)
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
