"""The definitions that golden models are compared with, too simple to be wrong: plain Python; `tests.independent`."""
import math
from fractions import Fraction

import numpy as np
from hypothesis import HealthCheck, settings

from circulant.sim.kinds.registry import layer_as_json
from circulant.sim.passes.bases import layer_arrays
from circulant.sim.passes.files import plain
from tests import independent


def repeatable(examples):
    """Settings of a property test: the same examples each time, however busy the machine is, and 20 times more in a
    soak."""
    return settings(max_examples=examples * (20 if settings.get_current_profile_name() == "soak" else 1),
                    derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


def half_up(x):
    """A rational number rounded to the nearest integer, halves upwards."""
    return math.floor(Fraction(x) + Fraction(1, 2))


def clip(x, width):
    """An integer saturated to ``width`` bits."""
    return max(-2 ** (width - 1), min(2 ** (width - 1) - 1, x))


def scaled(x, bits):
    """An integer times 2**bits, exactly."""
    return Fraction(x) * Fraction(2) ** bits


def dft(x):
    """The spectra (…, n) of (…, n)."""
    t = np.arange(x.shape[-1])
    return x @ np.exp(-2j * np.pi * (np.outer(t, t) % len(t)) / len(t))


def exact(x):
    """The packed spectra (…, k) of (…, k) by the definition."""
    k, y = x.shape[-1], dft(x)
    if k == 1:
        return y.real
    parts = [part for f in range(1, k // 2) for part in (y[..., f].real, y[..., f].imag)]
    return np.stack([y[..., 0].real, y[..., k // 2].real, *parts], axis=-1)


def circulant(c):
    k = len(c)
    return np.array([[c[(i - j) % k] for j in range(k)] for i in range(k)])


def block_circulant(blocks):
    return np.block([[circulant(c) for c in row] for row in blocks])


def turn(m, n, bits):
    """exp(2πj·m/n) with ``bits`` fraction bits."""
    angle = 2 * math.pi * m / n
    return half_up(Fraction(math.cos(angle)) * 2 ** bits), half_up(Fraction(math.sin(angle)) * 2 ** bits)


# What docs/numerics.md says, of lists of integers.

def told(layer, x):
    """What the layer gives for a sample."""
    return independent.layer(layer_as_json(layer), {
        name: array.tolist() for name, array in layer_arrays(layer).items()}, x)


def product(p, x):
    """What `sim.arith.circulant.Product` p gives."""
    return joint([p], [x])


def joint(parts, xs):
    """What `sim.arith.circulant.JointProduct` gives for a list for each part."""
    named = {f"part{n}": part for n, part in enumerate(parts)}
    arrays = {f".{name}.weights": part.weights.tolist() for name, part in named.items()}
    return independent.product({"name": ""} | {name: plain(part) for name, part in named.items()},
                               arrays | {".part0.bias": parts[0].bias.tolist()}, **dict(zip(named, xs, strict=True)))


def pwl(table, xs):
    """What `sim.arith.activation.Pwl` gives."""
    arrays = {f".table.{part}": getattr(table, part).tolist() for part in ("start", "slope", "base")}
    return independent.activated({"name": "", "table": plain(table)}, arrays, "table", xs)


def whole(weight, rows, columns):
    """The dense matrices (3, rows, columns), or (rows, columns), of first columns."""
    if weight.ndim == 4:
        return np.stack([whole(gate, rows, columns) for gate in weight])
    return block_circulant(weight)[:rows, :columns]
