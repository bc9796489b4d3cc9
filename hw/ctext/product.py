"""`sim.arith.circulant.Product` and `JointProduct` in C: spectra of x; spectral sums, inverse transforms, bias."""
import numpy as np

from circulant.hw.ctext import fft
from circulant.hw.ctext.unit import Array, Unit, beside
from circulant.hw.ctext.value import Value, limits, number, storage, width
from circulant.sim.arith.circulant import JointProduct, Product
from circulant.sim.refusal import Refusal
from circulant.sim.shape.layer import Windowed

__all__ = ["ROWS", "rows", "spectra", "transform"]

render = beside(__file__)

ROWS = 32
"""Rows of blocks that are computed side by side for SIMD units; half as many beside lanes."""


def spectra(product: Product, name: str) -> Array:
    """Working memory for the spectra of x."""
    return Array(storage(product.spectrum), name, product.columns)


def transform(unit: Unit, name: str, product: Product, inputs: int, *, foreign: bool = False,
              positions: int = 1) -> str:
    """The function ``<name>(x, spectra)`` for x of ``inputs`` values.

    Parameters:
        positions: vectors like x, whose blocks side by side are those of the matrix.
        foreign: x comes from outside and may be any integers of its type; those beyond the format are clipped to it.

    Raises:
        Refusal: when an integer on the way could leave 63 bits.
    """
    _, blocks, k = product.weights.shape
    q = blocks // positions
    if not product.weights.size or not 0 < inputs <= q * k:
        raise Refusal(f"A matrix of the C target must have rows and columns, but that of {name} has {product.rows} and "
                      f"{inputs}; leave the layer out")
    x, forward = Value.of("x", product.input.lo, product.input.hi), _forward(product)
    if foreign:
        x = Value("x", *limits(storage(product.input)), x.bits).clip(product.input.width)
    return render("transform.c.j2", name=name, q=q, k=k, inputs=inputs, padded=q * k != inputs,
                  x_type=storage(product.input), x=x, bin=_bin(product), spectrum_type=storage(product.spectrum),
                  spectrum=_spectrum(product), forward=forward,
                  forward_function=forward.function(unit) if k > 1 else "")


def rows(unit: Unit, name: str, product: Product | JointProduct, seen: Windowed | None = None) -> str:
    """Tables and the function ``<name>(spectra, …, y)``, with spectra for each part, and y of all padded rows.

    Parameters:
        seen: the layer whose window sees the vectors of the matrix, out of spectra of all pixels; the function then is
            ``<name>(spectra, top, left, y)``, with the window's first pixel, which may lie outside.

    Raises:
        Refusal: when an integer on the way could leave 63 bits.
    """
    parts = product.parts if isinstance(product, JointProduct) else (product,)
    first, k, p = parts[0], product.block_size, product.rows // product.block_size
    bits, positions = first.twiddle_bits, 1 if seen is None else seen.window.positions
    reach = sum(_reach(part, _spectrum(part).peak) for part in parts)
    sum_ = Value.of("sum", -reach, reach)
    brought = sum_.half_up(first.frac - first.product.frac).clip(first.product.width)
    inverse = fft.inverse(k, bits, brought.peak)
    row = Value.of("row", -inverse.peak, inverse.peak)
    bias = Value.of("bias", int(first.bias.min()), int(first.bias.max()))
    scales = first.grid.row_scales
    scaled = row * Value.of(f"(INT32_C(1) << {name}_scales[i])", 1, 1 << first.grid.spread) if scales else row
    y = (scaled.half_up(first.last_shift) + bias).clip(first.output.width)
    suffixes = [f"_{n}" for n in range(1, len(parts) + 1)] if len(parts) > 1 else [""]
    return render(
        "product.c.j2", name=name, p=p, k=k, seen=seen, parts=[
            {"suffix": suffix, "q": part.weights.shape[1] // positions, "product": part,
             "type": storage(part.spectrum), "weights": unit.table(
                 f"{name}_weights{suffix}", part.weights.reshape(p, positions, -1, k).transpose(1, 3, 2, 0).ravel()
                 .tolist()),
             "accumulate": _accumulate(unit, part, sum_)} for part, suffix in zip(parts, suffixes, strict=True)],
        biases=unit.table(f"{name}_bias", first.bias.tolist()),
        scales=unit.table(f"{name}_scales", scales) if scales else "", sum=sum_, brought=brought, row=row, bias=bias,
        y_type=storage(first.output), y=y, inverse=inverse, inverse_function=inverse.function(unit) if k > 1 else "")


def _forward(product: Product) -> fft.Transform:
    return fft.forward(product.block_size, product.twiddle_bits, -product.input.lo)


def _bin(product: Product) -> Value:
    """A value of the exact spectrum."""
    peak = _forward(product).peak
    return Value.of("bin", -peak, peak)


def _spectrum(product: Product) -> Value:
    """The same spectrum in its own format."""
    return _bin(product).half_up(product.input.frac - product.spectrum.frac).clip(product.spectrum.width)


def _reach(product: Product, peak: int) -> int:
    """A bound of |Σ FFT(w)∘FFT(x)| for spectra up to ``peak``: from the weights themselves, not from their format."""
    weights = np.abs(product.weights.astype(object))  # Python's integers: a sum of absolute values may leave int64.
    weights[..., 2::2] += weights[..., 3::2]  # re and im of a complex bin
    return int(weights.sum(1).max()) * peak


def _accumulate(unit: Unit, product: Product, sum: Value) -> str:
    """The function that adds up over j; products of the same types share it."""
    k = product.block_size
    weight, spectrum = number((int(product.weights.min()), int(product.weights.max()))), storage(product.spectrum)
    name = f"accumulate{k}_i{sum.bits}_" + "_".join(str(width(type)) for type in (weight, spectrum))
    return unit.function(name, lambda: render("accumulate.c.j2", name=name, k=k, weight=weight, spectrum=spectrum,
                                              type=sum.local, wide="(int64_t)" if sum.bits == 64 else "",
                                              factor=Value.of("", *limits(weight)).local))
