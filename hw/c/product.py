"""`sim.circulant.Product` in C: spectra of x, sums over j in the spectral domain, inverse transforms, bias."""
import math

import numpy as np

from circulant.hw.c import fft
from circulant.hw.c.unit import Array, Unit, render
from circulant.hw.c.value import Value, limits, number, storage, width
from circulant.sim.circulant import Product
from circulant.sim.refusal import Refusal

__all__ = ["emit", "spectra"]


def spectra(product: Product, name: str) -> Array:
    """The working memory that the function of a product asks for."""
    return Array(storage(product.spectrum), name, product.columns)


def emit(unit: Unit, prefix: str, product: Product, inputs: int, *, foreign: bool = False) -> str:
    """Tables and the function ``<prefix>(x, spectra, y)`` for x of ``inputs`` values and y of all padded rows.

    Parameters:
        foreign: x comes from outside and may be any integers of its type; those beyond the format are clipped to it.

    Raises:
        Refusal: when an integer on the way could leave 63 bits.
    """
    p, q, k = product.weights.shape
    if not p * q or not 0 < inputs <= q * k:
        raise Refusal(f"A matrix of the C target must have rows and columns, but that of {prefix} has {p * k} and "
                      f"{inputs}; leave the layer out")
    log_k, bits = int(math.log2(k)), product.twiddle_bits
    x_type = storage(product.input)
    x = Value.of("x", product.input.lo, product.input.hi)
    if foreign:
        x = Value("x", *limits(x_type), x.bits).clip(product.input.width)

    forward = fft.forward(k, bits, x.peak)
    bin = Value.of("bin", -forward.peak, forward.peak)
    spectrum = bin.half_up(product.input.frac - product.spectrum.frac).clip(product.spectrum.width)

    reach = _reach(product, spectrum.peak)
    sum = Value.of("sum", -reach, reach)
    exact = product.spectrum.frac + product.weight.frac
    brought = sum.half_up(exact - product.product.frac).clip(product.product.width)

    inverse = fft.inverse(k, bits, brought.peak)
    row = Value.of("row", -inverse.peak, inverse.peak)
    bias = Value.of("bias", int(product.bias.min()), int(product.bias.max()))
    y = (row.half_up(product.product.frac + log_k - product.output.frac) + bias).clip(product.output.width)
    return render(
        "product.c.j2", name=prefix, p=p, q=q, k=k, inputs=inputs, padded=q * k != inputs, product=product,
        weights=unit.table(f"{prefix}_weights", product.weights.ravel().tolist()),
        biases=unit.table(f"{prefix}_bias", product.bias.tolist()),
        x_type=x_type, x=x, bin=bin, spectrum_type=storage(product.spectrum), spectrum=spectrum, sum=sum,
        brought=brought, row=row, bias=bias, y_type=storage(product.output), y=y,
        forward=forward, forward_function=forward.function(unit) if k > 1 else "",
        inverse=inverse, inverse_function=inverse.function(unit) if k > 1 else "",
        accumulate=_accumulate(unit, product, sum))


def _reach(product: Product, peak: int) -> int:
    """A bound of |Σ FFT(w)∘FFT(x)| for spectra up to ``peak``: from the weights themselves, not from their format."""
    weights = np.abs(product.weights.astype(object))  # Python's integers: a sum of absolute values may leave int64.
    weights[..., 2::2] += weights[..., 3::2]  # re and im of a complex bin
    return int(weights.sum(1).max()) * peak


def _accumulate(unit: Unit, product: Product, sum: Value) -> str:
    """The function of the sums over j; products of the same types share it."""
    k = product.block_size
    weight, spectrum = number((int(product.weights.min()), int(product.weights.max()))), storage(product.spectrum)
    name = f"accumulate{k}_i{sum.bits}_" + "_".join(str(width(type)) for type in (weight, spectrum))
    return unit.function(name, lambda: render("accumulate.c.j2", name=name, k=k, weight=weight, spectrum=spectrum,
                                              type=sum.local, wide="(int64_t)" if sum.bits == 64 else "",
                                              factor=Value.of("", *limits(weight)).local))
