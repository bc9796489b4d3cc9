"""How functions that move, merge or pick axes become values at other places, or why they cannot."""
from typing import Any

from circulant.training.neutral import Call, Unsupported, Value
from circulant.training.neutral.call import HIDDEN, LAST_STEP

__all__ = ["getitem", "indexing", "move", "pack", "reshape", "unpack"]


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
