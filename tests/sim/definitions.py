"""The definitions that golden models are compared with: too simple to be wrong, in plain Python, nothing from sim."""
import math
from fractions import Fraction

import numpy as np
from hypothesis import HealthCheck, settings


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


def circulant(c):
    k = len(c)
    return np.array([[c[(i - j) % k] for j in range(k)] for i in range(k)])


def block_circulant(blocks):
    return np.block([[circulant(c) for c in row] for row in blocks])


# The transforms in integers, once more: over whole complex spectra, as lists of pairs of Python integers.

def turn(m, n, bits):
    """exp(2πj·m/n) with ``bits`` fraction bits."""
    angle = 2 * math.pi * m / n
    return half_up(Fraction(math.cos(angle)) * 2 ** bits), half_up(Fraction(math.sin(angle)) * 2 ** bits)


def times(a, b):
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def plus(a, b):
    return a[0] + b[0], a[1] + b[1]


def minus(a, b):
    return a[0] - b[0], a[1] - b[1]


def conjugate(a):
    return a[0], -a[1]


def rounded(a, bits):
    return tuple(half_up(scaled(part, -bits)) for part in a)


def mirrored(half, n):
    """The whole spectrum of real data from its bins 0 to n/2."""
    return [half[m] if m <= n // 2 else conjugate(half[n - m]) for m in range(n)]


def forward(x, bits):
    """The spectrum of real x by decimation in time; only what is turned by no multiple of 90 degrees is rounded."""
    n = len(x)
    if n == 1:
        return [(x[0], 0)]
    even, odd = forward(x[0::2], bits), forward(x[1::2], bits)
    found = {}
    for m in range(n // 4 + 1):
        if m == 0:
            turned = odd[0]
        elif 4 * m == n:
            turned = times(odd[m], (0, -1))
        else:
            turned = rounded(times(odd[m], conjugate(turn(m, n, bits))), bits)
        found[m] = plus(even[m % (n // 2)], turned)
        found[n // 2 + m] = minus(even[m % (n // 2)], turned)
        found[(n - m) % n], found[n // 2 - m] = conjugate(found[m]), conjugate(found[n // 2 + m])
    return [found[m] for m in range(n)]


def inverse(y, bits):
    """n times the real data of a spectrum, by the transpose of `forward`."""
    n = len(y)
    if n == 1:
        return [y[0][0]]
    even, odd = {}, {}
    for m in range(n // 4 + 1):
        even[m], turned = plus(y[m], y[m + n // 2]), minus(y[m], y[m + n // 2])
        if m == 0:
            odd[m] = turned
        elif 4 * m == n:
            odd[m] = times(turned, (0, 1))
        else:
            odd[m] = rounded(times(turned, turn(m, n, bits)), bits)
    x = [0] * n
    x[0::2], x[1::2] = inverse(mirrored(even, n // 2), bits), inverse(mirrored(odd, n // 2), bits)
    return x


def packed(y):
    """Bins 0, k/2, 1, …, k/2-1 of a whole spectrum as k real numbers."""
    k = len(y)
    if k <= 2:
        return [bin[0] for bin in y]
    return [y[0][0], y[k // 2][0], *(part for bin in y[1:k // 2] for part in bin)]


def unpacked(values):
    k = len(values)
    if k <= 2:
        return [(value, 0) for value in values]
    half = [(values[0], 0), *zip(values[2::2], values[3::2], strict=True), (values[1], 0)]
    return mirrored(half, k)


def brought(x, frac, form):
    """An integer with ``frac`` fraction bits in another format."""
    return clip(half_up(scaled(x, form.frac - frac)), form.width)


def product(p, x):
    """What `sim.arith.circulant.Product` p gives for the list of integers x."""
    return joint([p], [x])


def joint(parts, xs):
    """What `sim.arith.circulant.JointProduct` gives for a list of integers for each part."""
    first = parts[0]
    rows, _, k = first.weights.shape
    bits, log_k = first.twiddle_bits, k.bit_length() - 1
    totals = [[(0, 0)] * k for _ in range(rows)]
    for p, x in zip(parts, xs, strict=True):
        columns = p.weights.shape[1]
        x = [*x, *[0] * (columns * k - len(x))]
        spectra = [unpacked([brought(v, p.input.frac, p.spectrum) for v in packed(forward(x[j * k:(j + 1) * k], bits))])
                   for j in range(columns)]
        for i in range(rows):
            for j in range(columns):
                weights = unpacked(p.weights[i, j].tolist())
                totals[i] = [plus(t, times(w, s)) for t, w, s in zip(totals[i], weights, spectra[j], strict=True)]
    y = []
    for i, total in enumerate(totals):
        sums = [brought(v, first.spectrum.frac + first.weight.frac, first.product) for v in packed(total)]
        for r, value in enumerate(inverse(unpacked(sums), bits)):
            value = half_up(scaled(value, first.output.frac - first.product.frac - log_k))
            y.append(clip(value + int(first.bias[i * k + r]), first.output.width))
    return y


def pwl(table, x):
    """What `sim.arith.activation.Pwl` gives for the integer x: the line of the segment that the argument lies in."""
    edge = scaled(1, table.input.frac + table.reach)
    x = max(-edge, min(edge - 1, x))
    segment = max(s for s, start in enumerate(table.start.tolist()) if start <= x)
    u = x - int(table.start[segment]) if table.method == "lut" else x
    value = (scaled(int(table.slope[segment]) * u, -table.slope_format.frac - table.input.frac)
             + scaled(int(table.base[segment]), -table.base_format.frac))
    return clip(half_up(scaled(value, table.output.frac)), table.output.width)


def gru(layer, sequence):
    """The states that `sim.kinds.gru.Gru` takes over a sequence of lists of integers, unit by unit."""
    hidden, pre, state = layer.hidden, layer.gates.output.width, layer.gates.parts[1].input
    h, states = [0] * hidden, []
    for x in sequence:
        gates = joint(layer.gates.parts, (x, h))
        r, z = ([pwl(layer.sigmoid, gates[gate * len(gates) // 2 + unit]) for unit in range(hidden)]
                for gate in range(2))
        if layer.reset == "before":
            kept = [clip(half_up(scaled(a * b, -state.frac)), state.width) for a, b in zip(r, h, strict=True)]
            arguments = joint(layer.candidate.parts, (x, kept))
        else:
            driven, recurrent = product(layer.candidate, x), product(layer.candidate_recurrent, h)
            arguments = [clip(driven[unit] + half_up(scaled(r[unit] * recurrent[unit], -state.frac)), pre)
                         for unit in range(hidden)]
        n = [pwl(layer.tanh, arguments[unit]) for unit in range(hidden)]
        states.append(h := [clip(n[unit] + half_up(scaled(z[unit] * (h[unit] - n[unit]), -state.frac)), state.width)
                            for unit in range(hidden)])
    return states


def whole(weight, rows, columns):
    """The dense matrices (3, rows, columns), or (rows, columns), of first columns."""
    if weight.ndim == 4:
        return np.stack([whole(gate, rows, columns) for gate in weight])
    return block_circulant(weight)[:rows, :columns]
