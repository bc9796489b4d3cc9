"""Augmentation, drawn anew for each batch: images are mirrored and shifted, spectrograms masked, faster or slower."""
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import interpolate, pad

from circulant.sim.refusal import Refusal
from circulant.training.task.batches import Batch

__all__ = ["AUGMENTS", "augment"]

REACH = 2
"""Pixels of the farthest shift."""

MASKS = 2
"""Masks along each axis of a spectrogram; each is of up to a fifth of the bands, or a twentieth of the frames."""


SPEEDS = (0.9, 1.0, 1.1)
"""Speeds of a batch, of which each is as likely."""


def flip(x: Tensor, frames: int = 1) -> Tensor:
    """Half of the images (N, C, H, W) mirrored left to right."""
    mirrored = torch.rand(len(x)).lt(0.5).to(x.device)
    return torch.where(mirrored[:, None, None, None], x.flip(-1), x)


def shift(x: Tensor, frames: int = 1) -> Tensor:
    """Each image (N, C, H, W) moved by up to two pixels along both axes, with zeros where nothing is."""
    n, _, height, width = x.shape
    down, right = torch.randint(2 * REACH + 1, (2, n, 1)).to(x.device)
    rows = (down + torch.arange(height, device=x.device))[:, None, :, None]
    columns = (right + torch.arange(width, device=x.device))[:, None, None, :]
    images = torch.arange(n, device=x.device)[:, None, None, None]
    channels = torch.arange(x.shape[1], device=x.device)[None, :, None, None]
    moved = pad(x, (REACH,) * 4)[images, channels, rows, columns]
    return torch.empty_like(x).copy_(moved)  # Channels last, if ``x`` has them so: convolutions are then faster.


def delay(x: Tensor, frames: int = 1) -> Tensor:
    """Each sequence (N, T, frames · bands) without up to ``frames`` − 1 of its first frames, and zeros behind it.

    So a step is made of other frames each time.
    """
    n, steps, features = x.shape
    flat = pad(x.reshape(n, steps * frames, -1), (0, 0, 0, frames - 1))
    at = torch.randint(frames, (n, 1)).to(x.device) + torch.arange(steps * frames, device=x.device)
    return flat[torch.arange(n, device=x.device)[:, None], at].reshape(n, steps, features)


def mask(x: Tensor, frames: int = 1) -> Tensor:
    """Each sequence (N, T, frames · bands) with two runs of bands and two of frames set to zero, the mean.

    SpecAugment (Park et al., Interspeech 2019, section 2), without time warping.
    """
    n, steps, features = x.shape
    spectrogram = x.reshape(n, steps * frames, features // frames)
    for axis, widest in ((2, spectrogram.shape[2] // 5), (1, spectrogram.shape[1] // 20)):
        length = spectrogram.shape[axis]
        width = (torch.rand(MASKS, n) * (widest + 1)).long()
        begin = (torch.rand(MASKS, n) * (length - width + 1)).long()
        place = torch.arange(length)
        hidden = ((place >= begin[..., None]) & (place < (begin + width)[..., None])).any(0).to(x.device)
        spectrogram = spectrogram.masked_fill(hidden.unsqueeze(3 - axis), 0)
    return spectrogram.reshape(n, steps, features)


def paced(batch: Batch, frames: int = 1) -> Batch:
    """The sequences of a batch (N, T, frames · bands) at one of `SPEEDS`, by linear interpolation between frames.

    Ko et al., Interspeech 2015, on filter banks instead of samples: the pitch stays. A batch has one speed, so that
    sequences of one length keep one; it keeps its own where fewer steps would not hold its symbols.
    """
    speed = SPEEDS[int(torch.randint(len(SPEEDS), (1,)))]
    n, steps, features = batch.x.shape
    faster = max(1, round(steps / speed))
    lengths = None if batch.lengths is None else (batch.lengths / speed).round().long().clamp(1, faster)
    if batch.target_lengths is not None:  # Between two equal symbols CTC needs a blank.
        room = torch.full((n,), faster) if lengths is None else lengths
        if (room < 2 * batch.target_lengths + 1).any():
            return batch
    bands = batch.x.reshape(n, steps * frames, -1).transpose(1, 2)
    x = interpolate(bands, size=faster * frames, mode="linear", align_corners=False).transpose(1, 2)
    return batch._replace(x=x.reshape(n, faster, features), lengths=lengths)


AUGMENTS: dict[str, tuple[Callable[[Tensor, int], Tensor], ...]] = {
    "none": (), "flip": (flip,), "shift": (shift,), "flip-shift": (flip, shift), "delay": (delay,),
    "mask": (delay, mask), "speed": (delay,), "speed-mask": (delay, mask)}
"""By the name that `TrainingSettings.augment` gives them."""

SPECTRAL = ("delay", "mask", "speed", "speed-mask")
"""Augmentations that change sequences; the others change images."""


def augment(batch: Batch, name: str, frames: int = 1) -> Batch:
    """A batch, as the augmentation of this name changes it. It draws from torch's generator.

    Parameters:
        batch: of images (N, C, H, W), or for `SPECTRAL` ones of sequences (N, T, features).
        frames: of which a step of a sequence is made.

    Raises:
        Refusal: when the samples are of the other kind, or each step has a target whose speed would have to change.
    """
    axes, shape = (3, "sequences (N, T, features)") if name in SPECTRAL else (4, "images (N, C, H, W)")
    if AUGMENTS[name] and batch.x.ndim != axes:
        raise Refusal(f"training.augment = {name!r} must have {shape} to change, not samples of shape "
                      f"{tuple(batch.x.shape[1:])}; choose 'none'")
    if name.startswith("speed"):
        if batch.target_lengths is None and batch.y.ndim > 1 and batch.y.shape[1] == batch.x.shape[1]:
            raise Refusal(f"training.augment = {name!r} must have one target for a sequence, or symbols, not one for "
                          "each step; choose 'mask'")
        batch = paced(batch, frames)
    x = batch.x
    for change in AUGMENTS[name]:
        x = change(x, frames)
    return batch._replace(x=x)
