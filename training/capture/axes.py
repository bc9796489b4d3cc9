"""How functions that move, merge, pick or reduce axes become nodes of the neutral graph, or why they cannot."""
from collections.abc import Sequence
from typing import Any

import torch

from circulant.training.capture.call import HIDDEN, LAST_STEP, Call, Unsupported, Value
from circulant.training.capture.graph import Reduce, Scale

__all__ = ["getitem", "indexing", "maximum", "mean", "move", "pack", "reshape", "total", "unpack"]


def mean(call: Call) -> Value:
    """A mean over axes, which over those of an image or over time is global pooling."""
    return _reduced(call, "mean")


def total(call: Call) -> Value:
    """A sum over axes: the mean, as often as there are values."""
    mean = _reduced(call, "mean", part="mean")
    count = call.tensor.sizes, mean.sizes
    size = torch.Size(count[0]).numel() // torch.Size(count[1]).numel()
    return call.emit(Scale, (mean,), mean.batch, scale=torch.tensor([float(size)], dtype=torch.float64),
                     shift=torch.zeros(1, dtype=torch.float64), axis=None)


def maximum(call: Call) -> Value | list[Value]:
    """A maximum over axes, amax, or the values and places of one over an axis, max, as `mean`."""
    value = _reduced(call, "max")
    places = Value(value.places, value.batch, refused="the attribute 'indices' is not supported; only the values of a "
                                                      "maximum are")
    return value if call.kind == "amax" else [value, places]


def _reduced(call: Call, mode: str, part: str = "") -> Value:
    source, options = call.tensor, call.bind("dim", "keepdim", dim=None, keepdim=False)
    given = options.get("dim")
    if given is None or isinstance(given, Value) or call.kwargs.get("dtype") is not None:
        raise Unsupported("it must name the axes that it reduces, and nothing else")
    axes = tuple(sorted(axis % source.rank for axis in (given if isinstance(given, Sequence) else (given,))))
    if source.batch in axes:
        raise Unsupported("it must not reduce the batch; name other axes")
    batch = source.batch - (0 if options["keepdim"] else sum(axis < source.batch for axis in axes))
    inner = tuple(axis - (axis > source.batch) for axis in axes)
    if all(source.sizes[axis] == 1 for axis in inner):  # There is nothing to reduce.
        assert source.places is not None
        places = source.places if options["keepdim"] else source.places.squeeze(inner)
        return Value(places, batch, source.path, source.refused)
    return call.emit(Reduce, (source,), batch, part=part, mode=mode, axes=axes, keep=bool(options["keepdim"]))


def move(call: Call) -> Any:
    """Moves of values; what they mean for a layer at their new places is judged where it comes."""
    if (found := call.move()) is None:
        raise Unsupported("it must leave the batch an axis of its own; name other axes")
    return found


def reshape(call: Call) -> Any:
    """Flatten, view, reshape, squeeze, unsqueeze and permutations, as `move`."""
    source = call.tensor
    if (found := call.move()) is None:
        raise Unsupported(f"it must leave the batch an axis of its own, not turn {call.shape(source)} into "
                          f"{tuple(getattr(call.result, 'shape', ()))}")
    return found


def pack(call: Call) -> list[Value]:
    """Sequences of one length as they are, the batch first."""
    source = call.tensor
    return [Value(source.places, 0, (*source.path, *((call.kind,) if source.batch else ())), source.refused,
                  "" if source.batch else source.node), Value()]


def unpack(call: Call) -> list[Value]:
    """The sequences that were packed, and their lengths."""
    source, padded = call.tensor, call.result[0]
    batch = 0 if call.args[2] else 1
    if padded.shape[1 - batch] != source.sizes[0]:
        raise Unsupported("it must give as many steps as there are, not more; leave out total_length")
    return [Value(source.places, batch, (*source.path, *((call.kind,) if batch else ())), source.refused,
                  "" if batch else source.node), Value()]


def getitem(call: Call) -> Any:
    """A part of a tensor, such as the last step of a sequence, as `move`."""
    found = call.move()
    if found is None or bool((found.places == HIDDEN).all()):
        raise Unsupported(indexing(call.args[1]))
    return found


def indexing(key: Any, *, recurrent: bool = True) -> str:
    """Why an index is refused.

    Parameters:
        recurrent: whether there is a recurrent layer, whose last step may be meant.
    """
    def text(part: Any) -> str:
        if not isinstance(part, slice):
            return "…" if part is ... else str(part)
        return ":".join("" if end is None else str(end) for end in (part.start, part.stop))

    words = ", ".join(map(text, key if isinstance(key, tuple) else (key,)))
    way = LAST_STEP if recurrent else "take a range of the features, or a mean or maximum over the steps"
    return f"indexing with [{words}] is not supported; {way}"
