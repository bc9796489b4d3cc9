"""Properties that all kinds of layers share for the passes over a network, golden layers and those in float64 alike."""
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["leaves", "unknown", "within"]


def within(layer: Any) -> tuple[Any, ...]:
    """The layers that a layer is made of: both directions, the layers of both branches; none for a plain layer."""
    return getattr(layer, "within", ())


def leaves(layers: Iterable[Any]) -> Iterator[Any]:
    """Layers that are made of no other ones, in the order of computation, in place of those made of them."""
    for layer in layers:
        parts = within(layer)
        if parts or layer.kind == "residual":
            yield from leaves(parts)
        else:
            yield layer


def unknown(layer: Any, done: str) -> TypeError:
    """The error of a pass that has no implementation for a kind of layer: a fault of the program, not of its input.

    Parameters:
        done: what the pass does to layers, such as "quantized".
    """
    return TypeError(f"A layer must be of a kind that can be {done}, not {type(layer).__name__}; register it there "
                     "(docs/architecture.md, how to add a layer kind)")
