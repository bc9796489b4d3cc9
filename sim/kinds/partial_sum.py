"""Shares of the columns of a matrix: sums of products in the spectral domain, and what makes outputs of these.

They are of a circuit, not of a file: a share is a fully connected layer whose product is a `SpectralProduct`.
"""
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from circulant.sim.arith import batch_layout
from circulant.sim.arith.circulant import Product
from circulant.sim.arith.fixed import Format, Integers
from circulant.sim.arith.multiplier import EXACT
from circulant.sim.kinds.add import Add

__all__ = ["PartialSum", "SpectralProduct"]


class SpectralProduct(Product):
    """Σ_j FFT(w_ij) ∘ FFT(x_j) of some block columns j, exactly, in the order of `sim.arith.fft`."""

    spectral = True

    @classmethod
    def of(cls, product: Product, begin: int, end: int) -> "SpectralProduct":
        """Product of the block columns from ``begin`` up to ``end``, as wide as these weights ask for; with approximate
        products, as their formats do."""
        weights = product.weights[:, begin:end]
        if product.multiplier == EXACT:
            reach = max(int(np.abs(weights[:, :, place]).sum((1, 2)).max())
                        for place in batch_layout.bins(product.block_size)) * -product.spectrum.lo
        else:
            reach = replace(product, weights=weights).reach
        form = Format(reach.bit_length() + 1, product.frac)
        return cls(weights, np.zeros_like(product.bias), product.weight, product.input, product.spectrum, product=form,
                   output=form, twiddle_bits=product.twiddle_bits, multiplier=product.multiplier)

    @property
    def last_shift(self) -> int:
        return 0

    @property
    def _inverse_bits(self) -> int:
        return self.product.width

    def values(self, sums: np.ndarray, *, spent: bool = False) -> Integers:
        return self.rounded(sums, spent=spent)


@dataclass(frozen=True, eq=False)
class PartialSum(Add):
    """y = W x + b, or max(0, W x + b), from the sums of shares of W's columns: they are added up before all rounding.

    Parameters:
        product: that the shares are of.
        rows: values of y.
    """

    product: Product = field(kw_only=True)
    rows: int = field(kw_only=True)

    @property
    def outputs(self) -> int:
        return self.rows

    def __call__(self, values: Sequence[Integers], record: Any = None) -> Integers:
        total = self.combined([np.asarray(each, np.int64) for each in values])
        k = self.product.block_size
        sums = batch_layout.spread(total.reshape(-1, self.inputs), self.inputs, k)
        y = batch_layout.rows(self.product.values(sums), self.rows).reshape(*total.shape[:-1], self.rows)
        return np.maximum(y, 0, out=y) if self.relu else y
