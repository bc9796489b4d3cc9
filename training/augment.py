"""Variants of the training images, drawn anew for each batch."""
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import pad

from circulant.sim.refusal import Refusal

__all__ = ["AUGMENTS", "augment"]

REACH = 2
"""Pixels of the farthest shift."""


def flip(x: Tensor) -> Tensor:
    """Half of the images (N, C, H, W) mirrored left to right."""
    mirrored = torch.rand(len(x)).lt(0.5).to(x.device)
    return torch.where(mirrored[:, None, None, None], x.flip(-1), x)


def shift(x: Tensor) -> Tensor:
    """Each image (N, C, H, W) moved by up to two pixels along both axes, with zeros where nothing is."""
    n, _, height, width = x.shape
    down, right = torch.randint(2 * REACH + 1, (2, n, 1)).to(x.device)
    rows = (down + torch.arange(height, device=x.device))[:, None, :, None]
    columns = (right + torch.arange(width, device=x.device))[:, None, None, :]
    images = torch.arange(n, device=x.device)[:, None, None, None]
    channels = torch.arange(x.shape[1], device=x.device)[None, :, None, None]
    return pad(x, (REACH,) * 4)[images, channels, rows, columns]


AUGMENTS: dict[str, tuple[Callable[[Tensor], Tensor], ...]] = {
    "none": (), "flip": (flip,), "shift": (shift,), "flip-shift": (flip, shift)}
"""By the name that `TrainingSettings.augment` gives them."""


def augment(x: Tensor, name: str) -> Tensor:
    """The samples of a batch, as the augmentation of this name changes them. It draws from torch's generator.

    Raises:
        Refusal: when they are no images.
    """
    if AUGMENTS[name] and x.ndim != 4:
        raise Refusal(f"training.augment = {name!r} must have images (N, C, H, W) to change, not samples of shape "
                      f"{tuple(x.shape[1:])}; choose 'none'")
    for change in AUGMENTS[name]:
        x = change(x)
    return x
