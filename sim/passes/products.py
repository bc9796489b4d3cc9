"""Products of layers in float64: every one is the definition, a dense matrix times a vector."""
from collections.abc import Callable

import numpy as np

from circulant.sim.arith import fft
from circulant.sim.arith.circulant import dense, pack, pad
from circulant.sim.arith.fixed import Reals
from circulant.sim.refusal import Refusal

__all__ = ["Tap", "check", "check_first_columns", "ignore", "product", "spectra"]

Tap = Callable[[str, Reals], None]
"""Called with the name and the values of every tensor on the way: "gru.recurrent_product.output", …"""


def ignore(name: str, values: Reals) -> None:
    """The tap of somebody who only wants the outputs."""


def spectra(blocks: Reals) -> Reals:
    """Packed real spectra (…, k) of real blocks (…, k), in the order of `sim.arith.fft`."""
    return pack(np.fft.rfft(blocks, axis=-1), blocks.shape[-1])


def product(name: str, bias: Reals, tap: Tap, parts: dict[str, tuple[Reals, Reals]]) -> Reals:
    """Σ W x + b (…, groups, rows) for bias (groups, rows), and by name first columns (groups, p, q, k) and x.

    Its tensors are shown to ``tap``: x and spectrum of every part; the spectral sum where all have one block size.
    """
    y, sums = np.asarray(bias), []
    for part, (weight, x) in parts.items():
        groups, p, q, k = weight.shape
        flat, blocks = weight.reshape(groups * p, q, k), pad(x, q * k).reshape(*x.shape[:-1], q, k)
        rows = blocks.reshape(*x.shape[:-1], -1) @ dense(flat).T
        y = y + rows.reshape(*x.shape[:-1], groups, p * k)[..., :bias.shape[1]]
        if tap is not ignore:
            tap(f"{part}.input", x)
            spectrum = np.fft.rfft(blocks)
            tap(f"{part}.spectrum", pack(spectrum, k))
            bins = np.moveaxis(spectrum, -1, 0).reshape(spectrum.shape[-1], -1, q)  # A matrix product for each bin.
            found = bins @ np.fft.rfft(flat, axis=-1).transpose(2, 1, 0)
            sums.append(pack(np.moveaxis(found, 0, -1).reshape(*x.shape[:-1], groups * p, -1), k))
    if sums and len({each.shape for each in sums}) == 1:
        tap(f"{name}.product", np.asarray(sum(sums)))
    tap(f"{name}.output", y[..., 0, :] if len(bias) == 1 else y)
    return y


def check(name: str, **tensors: tuple[Reals, tuple[int, ...]]) -> None:
    for field, (given, rule) in tensors.items():
        if given.shape != rule:
            raise Refusal(f"Layer {name!r}: {field} must have the shape {rule}, not {given.shape}; export it again")
        if not np.isfinite(given).all():
            raise Refusal(f"Layer {name!r}: {field} must be finite, but it holds NaN or infinity; train again with a "
                          "lower learning rate")


def check_first_columns(name: str, **matrices: tuple[Reals, tuple[int, ...]]) -> None:
    """Check first columns (…, p, q, k) of matrices (…, rows, columns)."""
    for field, (weight, (*groups, rows, columns)) in matrices.items():
        k = fft.check_block_size(int(weight.shape[-1]))
        check(name, **{field: (weight, (*groups, -(-rows // k), -(-columns // k), k))})
