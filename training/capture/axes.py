"""How functions that move, merge, pick or reduce axes become nodes of the neutral graph, or why they cannot."""
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import nn

from circulant.training.capture.call import LAST_STEP, Call, Unsupported, Value
from circulant.training.models.cells import ResetBeforeGru

__all__ = ["attribute", "cat", "getitem", "maximum", "mean", "permute", "reshape"]


def mean(call: Call) -> Value:
    """A mean over axes, which over those of an image or over time is global pooling."""
    return _reduced(call, "mean")


def maximum(call: Call) -> Value:
    """A maximum over axes, amax, or the values of one over an axis, max, as `mean`."""
    value = _reduced(call, "maximum")
    return value if call.kind == "amax" else replace(value, kind="maxima")


def _reduced(call: Call, op: str) -> Value:
    source, options = call.tensor, call.bind("dim", "keepdim", dim=None, keepdim=False)
    given = options["dim"]
    if given is None or isinstance(given, Value) or call.kwargs.get("dtype") is not None:
        raise Unsupported("it must name the axes that it reduces, and nothing else")
    rank = len(source.axes)
    axes = tuple(sorted(axis % rank for axis in (given if isinstance(given, Sequence) else (given,))))
    if source.batch in axes:
        raise Unsupported("it must not reduce the batch; name other axes")
    left = tuple(label for axis, label in enumerate(source.axes) if options["keepdim"] or axis not in axes)
    return call.emit(op, (source.node,), left, None, {"axes": axes, "keep": bool(options["keepdim"])})


def reshape(call: Call) -> Value:
    """Flatten, view, reshape, squeeze, unsqueeze: the values stay in their order, and the batch an axis of its own.

    Axes are merged or split, or axes of one element come and go; what that means for a layer is judged where it comes.
    """
    source = call.tensor
    groups = _regroup(source.sizes, call.result)
    if groups is None and source.batch == 0 and source.sizes[:1] == call.result[:1]:
        return call.emit("reshape", (source.node,), ("batch", *("feature" for _ in call.result[1:])))
    if groups is None or not any(group == (source.batch,) for group in groups):
        raise Unsupported(f"it must leave the batch an axis of its own, not turn {source.sizes} into {call.result}")
    axes = tuple(source.axes[group[0]] if len(group) == 1 else "feature" for group in groups)
    if groups == [(axis,) for axis in range(len(source.axes))]:
        return source
    return call.emit("reshape", (source.node,), axes)


def _regroup(old: Sequence[int], new: Sequence[int]) -> list[tuple[int, ...]] | None:
    """The axes of the old shape that each axis of the new one is made of; None where one would be split."""
    groups: list[tuple[int, ...]] = []
    axis = 0
    for size in new:
        group: tuple[int, ...] = ()
        product = 1
        while product < size and axis < len(old):
            product, group, axis = product * old[axis], (*group, axis), axis + 1
        if size == 1 and axis < len(old) and old[axis] == 1:
            group, axis = (axis,), axis + 1
        if product != size:
            return None
        groups.append(group)
    if any(size != 1 for size in old[axis:]):
        return None
    return groups


def permute(call: Call) -> Value:
    """Permute and transpose."""
    source = call.tensor
    rank = len(source.axes)
    if call.kind == "permute":
        given = call.kwargs.get("dims", call.args[1:])
        order = list(given[0] if given and isinstance(given[0], Sequence) else given)
    else:
        options = call.bind("dim0", "dim1")
        order = list(range(rank))
        one, other = options["dim0"] % rank, options["dim1"] % rank
        order[one], order[other] = order[other], order[one]
    order = [axis % rank for axis in order]
    axes = tuple(source.axes[axis] for axis in order)
    return call.emit("permute", (source.node,), axes, None, {"order": tuple(order)})


def attribute(call: Call) -> Value:
    """The values of a maximum; no other attribute."""
    if call.sources[0].kind == "maxima" and call.args[1] == "values":
        return replace(call.sources[0], kind="tensor")
    raise Unsupported(f"the attribute {call.args[1]!r} is not supported; only the values of a maximum are")


def getitem(call: Call) -> Value:
    """A part of what a recurrent layer returns, the last step of a sequence, or the values of a maximum."""
    source, key = call.sources[0], call.args[1]
    if source.kind == "maxima" and key == 0:
        return replace(source, kind="tensor")
    module = call.module_of(source.node)
    if source.kind == "result" and key in (0, 1):
        states = "states" if isinstance(module, nn.GRU | nn.RNN | ResetBeforeGru) else "cells"
        return replace(source, kind=states if key else "tensor")
    if source.kind == "cells" and key == 0:
        return replace(source, kind="states")
    if source.kind == "states" and isinstance(key, int):
        ways = 2 if module.bidirectional else 1
        from_end = module.num_layers * ways - key if key >= 0 else -key
        if from_end == 1 and ways == 1:
            return _ended(call, source, "last_step")
        if ways == 2 and from_end in (1, 2):
            return replace(source, kind="end", part=2 - from_end)
    if source.kind == "tensor" and "time" in source.axes:
        time, keys = source.axes.index("time"), key if isinstance(key, tuple) else (key,)
        others = [part for axis, part in enumerate(keys) if axis != time]
        if keys[time:time + 1] == (-1,) and all(part == slice(None) for part in others):
            return _ended(call, source, "last_step")
    raise Unsupported(f"indexing with [{_index(key)}] is not supported; {LAST_STEP}")


def cat(call: Call) -> Value:
    """The last states of both directions, side by side; nothing else may be joined."""
    options = call.bind("dim", "axis", dim=0)
    ends = [(value.kind, value.node, value.part) for value in call.sources]
    both = [("end", ends[0][1], part) for part in (0, 1)]
    if ends == both and options.get("axis", options["dim"]) in (1, -1):
        return _ended(call, call.sources[0], "ends")
    raise Unsupported("only the ends of both directions may be joined, torch.cat((h_n[-2], h_n[-1]), -1)")


def _ended(call: Call, source: Value, op: str) -> Value:
    time = source.axes.index("time")
    axes = tuple(label for label in source.axes if label != "time")
    return call.emit(op, (source.node,), axes, None, {"axis": time})


def _index(key: Any) -> str:
    def text(part: Any) -> str:
        if not isinstance(part, slice):
            return "…" if part is ... else str(part)
        return ":".join("" if end is None else str(end) for end in (part.start, part.stop))

    return ", ".join(map(text, key if isinstance(key, tuple) else (key,)))
