"""Values and calls of a capture: where the values of a recorded tensor come from, and a call on them."""
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from circulant.training.neutral.graph import Node

__all__ = ["HIDDEN", "LAST_STEP", "Call", "Unsupported", "Value"]

LAST_STEP = "take the last step of a recurrent layer with out[:, -1] or h_n[-1]"

HIDDEN = 1 << 39
"""The number of all values that no node gives, such as the states of the lower layers of a recurrent module."""


class Unsupported(Exception):
    """Why a node cannot be captured; its text ends up in the report."""


@dataclass(frozen=True, eq=False)
class Value:
    """Origin of the values of a tensor that depends on the sample.

    Parameters:
        places: for one sample the number of each of its values among those of all nodes; None after a refusal.
        batch: the axis of the batch.
        path: names of the calls that moved the values since nodes gave them.
        refused: why it may not be taken, or nothing.
        node: the node whose values these are, all of them as it gives them; nothing where they are moved.
    """

    places: Tensor | None = None
    batch: int = 0
    path: tuple[str, ...] = ()
    refused: str = ""
    node: str = ""

    @property
    def rank(self) -> int:
        """Axes, that of the batch included."""
        assert self.places is not None
        return self.places.ndim + 1

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape for one sample."""
        assert self.places is not None
        return tuple(self.places.shape)


@dataclass(frozen=True, eq=False)
class Call:
    """One call in a model's forward method.

    Parameters:
        kind: class of the module, or name of the function.
        module: what is called, None for a function.
        args, kwargs: with `Value` in place of what depends on the sample.
        result: what the call gave, None where it failed.
        rows: samples in the batch.
        emit: adds a neutral node: (class, sources, axis of the batch, fields) to its value.
        move: the values of a function that only moves values, of each tensor that it gives; None where the batch is
            no axis of its own any more.
        before: the names and classes of the nodes that a value depends on, back to vectors.
    """

    kind: str
    module: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any
    rows: int
    emit: Callable[..., Value]
    move: Callable[[], Any]
    before: Callable[[Value], list[tuple[str, type[Node]]]]

    def shape(self, value: Value) -> tuple[int, ...]:
        """The shape of a value with the batch in it."""
        return (*value.sizes[:value.batch], self.rows, *value.sizes[value.batch:])

    def bind(self, *names: str, **defaults: Any) -> dict[str, Any]:
        """The arguments after the first, by name."""
        given = dict(zip(names, self.args[1:], strict=False)) | {
            name: value for name, value in self.kwargs.items() if name in names}
        return defaults | given

    @property
    def given(self) -> tuple[Any, ...]:
        """All arguments, by place and by name."""
        return *self.args, *self.kwargs.values()

    @property
    def tensor(self) -> Value:
        """The one tensor that it works on."""
        first = next(iter(self.given), None)
        if isinstance(first, Value):
            return first
        if isinstance(first, tuple) and first and isinstance(first[0], Value):
            if any(each.refused for each in first if isinstance(each, Value)):
                raise Unsupported("it must take the values of a maximum without their places; use amax")
            raise Unsupported(f"it must take a tensor, not all that a recurrent layer returns; {LAST_STEP}")
        raise Unsupported("it must depend on the input of the model, not on a constant")
