"""How far the tensors of a layer can reach at worst: what the kinds have in common."""
from collections.abc import Iterable, Iterator

import numpy as np

from circulant.sim.arith.activation import Pwl
from circulant.sim.arith.circulant import Product
from circulant.sim.arith.fixed import Format
from circulant.sim.passes.bounds import bins, matrix

__all__ = ["reach", "reached", "sums", "vector"]


def reach(form: Format) -> float:
    """The greatest magnitude of a format."""
    return -form.lo * form.step


def reached(pwl: Pwl) -> float:
    """The greatest magnitude of a table: a line takes it at an end of its segment."""
    return float(np.abs(pwl.output.real(pwl(pwl.ends))).max())


def vector(name: str, product: Product, peak: float) -> Iterator[tuple[str, float]]:
    """A vector and its spectrum."""
    yield f"{name}.input", peak
    yield f"{name}.spectrum", product.block_size * peak


def sums(name: str, parts: Iterable[tuple[Product, float]]) -> list[tuple[str, float]]:
    """The sums of products of vectors up to a peak, and the rows with their bias."""
    spectral, rows = np.zeros(1), np.zeros(1)
    for product, peak in parts:
        weights = product.weight.real(product.weights)  # As the format has them, whatever the shifts of the rows are.
        spectral = spectral + np.abs(bins(weights)).sum(1) * product.block_size * peak
        rows = rows + np.abs(matrix(product)).sum(1) * peak + np.abs(product.output.real(product.bias))
    return [(f"{name}.sums", float(spectral.max())), (f"{name}.product", float(spectral.max())),
            (f"{name}.output", float(rows.max()))]
