"""The order of the values of an image, and what a pooling may look like: rules of golden and float layers alike."""
import numpy as np

from circulant.sim.refusal import Refusal
from circulant.sim.shape.window import Grid, Window

__all__ = ["MODES", "ORDERS", "check_order", "check_pool", "flat", "flattened"]

MODES = ("max", "average")
ORDERS = ("pixels", "channels")


def flat(channels: int, grid: Grid, *, rows: bool) -> int:
    """Values of an image, or of a row of its pixels."""
    height, width = grid
    return channels * width * (1 if rows else height)


def flattened(x: np.ndarray, order: str, *, rows: bool) -> np.ndarray:
    """Images (N, height, width, channels) as vectors (N, outputs) or sequences (N, height, outputs)."""
    if order == "channels":
        x = np.moveaxis(x, -1, 2 if rows else 1)
    return x.reshape(*x.shape[:2], -1) if rows else x.reshape(len(x), -1)


def check_order(name: str, order: str) -> None:
    """
    Raises:
        Refusal: when the order is unknown.
    """
    if order not in ORDERS:
        raise Refusal(f"Layer {name!r} must flatten by 'pixels' or 'channels', not {order!r}; choose one")


def check_pool(name: str, mode: str, window: Window, grid: Grid) -> None:
    """
    Raises:
        Refusal: when the mode is unknown, or the window does not fit.
    """
    if mode not in MODES:
        raise Refusal(f"Layer {name!r} must pool by 'max' or 'average', not {mode!r}; choose one")
    if any(2 * pad > kernel for pad, kernel in zip(window.padding, window.kernel, strict=True)):
        raise Refusal(f"Layer {name!r}: the padding must be at most half of the kernel {window.kernel}, not "
                      f"{window.padding}; choose less")
    window.outputs(name, grid)
