"""Values and calls of a capture: the values of torch's graph, and a call of a module or function on them."""
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["LAST_STEP", "Call", "Unsupported", "Value"]

LAST_STEP = "take the last step of a recurrent layer with out[:, -1] or h_n[-1]"


class Unsupported(Exception):
    """Why a node cannot be captured; its text ends up in the report."""


@dataclass(frozen=True)
class Value:
    """The value that a node of torch's graph yields.

    Parameters:
        kind: "tensor"; "maxima", a maximum's values and places; "result", all that a recurrent layer returns; "cells",
            the pair of an LSTM; "states", its h_n; "end", the last state of one direction; "number", shapes and plain
            values; "unknown" after a refusal.
        node: the name of the neutral node behind it.
        axes: "batch", "time" or "feature" for each axis of a tensor.
        sizes: of these axes.
        part: which direction an "end" is of, 0 or 1.
    """

    kind: str
    node: str = ""
    axes: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    part: int = 0

    @property
    def batch(self) -> int:
        """The axis of the batch."""
        return self.axes.index("batch")


@dataclass(frozen=True)
class Call:
    """One call in a model's forward method.

    Parameters:
        kind: class of the module, or name of the function.
        module: what is called, None for a function.
        sources: the values of ``args`` that come from other nodes, in their order.
        args, kwargs: with values in place of torch's nodes.
        result: shape of the result for the sample.
        emit: adds a neutral node: (op, inputs, axes, module, options) to its value.
        module_of: from the name of a neutral node to its module.
    """

    kind: str
    module: Any
    sources: tuple[Value, ...]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: tuple[int, ...]
    emit: Callable[..., Value]
    module_of: Callable[[str], Any]

    def bind(self, *names: str, **defaults: Any) -> dict[str, Any]:
        """The arguments after the first, by name."""
        given = dict(zip(names, self.args[1:], strict=False)) | {
            name: value for name, value in self.kwargs.items() if name in names}
        return defaults | given

    @property
    def tensor(self) -> Value:
        """The one tensor that it works on."""
        if not self.sources or self.sources[0].kind == "number":
            raise Unsupported("it must depend on the input of the model, not on a constant")
        source = self.sources[0]
        if source.kind != "tensor":
            if source.kind == "maxima":
                raise Unsupported("it must take the values of a maximum without their places; use amax")
            raise Unsupported(f"it must take a tensor, not all that a recurrent layer returns; {LAST_STEP}")
        return source
