"""Tensors inside of a golden model: every tensor on the way, as integers, by the names of the taps of
`sim.real.float_model`.

Behind those there are ``….sums``, the exact sums of products, before they are rounded to ``….product``.
"""
from dataclasses import dataclass

import numpy as np

from circulant.sim.arith import batch_layout
from circulant.sim.arith.circulant import JointProduct, Product
from circulant.sim.arith.fixed import Format, Integers

__all__ = ["Recorder", "Tensor"]


@dataclass(frozen=True, eq=False)
class Tensor:
    """Integers and their format.

    Parameters:
        integers: (N, …), or (N, T, …) where there is one for each step; of sequences with lengths, the longest first,
            (steps of all sequences, …), step by step. Vectors are (…, n), the pre-activations of
            several gates (…, gates, n), spectra and sums (…, blocks, k).
        row_shifts: by how many bits each block of sums is finer than the format says; empty where all are 0.
    """

    integers: Integers
    format: Format
    row_shifts: tuple[int, ...] = ()


class Recorder:
    """Collects what layers show of lanes (k, blocks, …, N), step by step or all steps at once.

    Parameters:
        lengths: whether sequences may end before others.
    """

    def __init__(self, *, lengths: bool = False) -> None:
        self._join = np.concatenate if lengths else lambda values: np.stack(values, axis=1)
        self._seen: dict[str, tuple[Format, list[Integers], bool, tuple[int, ...]]] = {}

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Every tensor by name, in the order in which they were first seen; of a layer backwards in time as it is."""
        return {name: Tensor(self._join(values) if stepwise else values[0], form, row_shifts)
                for name, (form, values, stepwise, row_shifts) in self._seen.items()}

    def vector(self, name: str, x: Integers, size: int, form: Format, *, gates: int = 1, step: bool = True) -> None:
        """Vectors of ``size`` values, or several of them, each in whole blocks."""
        rows = [batch_layout.rows(part, size) for part in np.split(x, gates, axis=1)]
        self._add(name, rows[0] if gates == 1 else np.stack(rows, axis=-2), form, step)

    def spectral(self, name: str, x: Integers, form: Format, *, step: bool = True,
                 row_shifts: tuple[int, ...] = ()) -> None:
        """Spectra or sums of them."""
        self._add(name, np.moveaxis(x, (-1, 1, 0), (0, -2, -1)).astype(np.int64), form, step, row_shifts)

    def product(self, name: str, product: Product | JointProduct, sums: np.ndarray, size: int, *, gates: int = 1,
                step: bool = True) -> None:
        """The sums of a product and what becomes of them."""
        first = product.parts[0] if isinstance(product, JointProduct) else product
        whole = Format(min(62, product.reach.bit_length() + 1), first.frac)
        for tensor, values, form in (("sums", sums, whole), ("product", product.rounded(sums), first.product)):
            self.spectral(f"{name}.{tensor}", values, form, step=step, row_shifts=first.row_shifts)
        self.vector(f"{name}.output", product.values(sums), size, first.output, gates=gates, step=step)

    def values(self, name: str, x: Integers, form: Format) -> None:
        """A tensor (N, …) as it is."""
        self._add(name, x, form, False)

    def _add(self, name: str, values: Integers, form: Format, step: bool, row_shifts: tuple[int, ...] = ()) -> None:
        self._seen.setdefault(name, (form, [], step, row_shifts))[1].append(values)
