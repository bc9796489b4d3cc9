"""The integer model of docs/numerics.md in plain Python: a network from ``network.json`` and ``weights.npz``.

It is written from that page alone, imports nothing of `circulant`, and has numpy only to read files. A vector is a list
of integers, a sequence a list of vectors, an image a list of rows of pixels, which are vectors.
"""
import json
import math

import numpy as np


def round_shift(v, s):
    return (v + (1 << s - 1)) >> s if s > 0 else v << -s


def sat(v, width):
    return min(max(v, -(1 << width - 1)), (1 << width - 1) - 1)


def requantize(v, frac, form):
    """An integer with ``frac`` fraction bits in a format."""
    return sat(round_shift(v, frac - form["frac"]), form["width"])


def each(f, *vectors):
    return [f(*values) for values in zip(*vectors, strict=True)]


def joined(parts):
    return [v for part in parts for v in part]


def blocks(x, k):
    """A vector in blocks of k, zeros behind it."""
    x = x + [0] * (-len(x) % k)
    return [x[n:n + k] for n in range(0, len(x), k)]


def twiddles(n, t):
    return [(m, *(round(f(2 * math.pi * m / n) * 2 ** t) for f in (math.cos, math.sin))) for m in range(1, n // 4)]


def fft(x, t):
    """X[0], X[n/2], re X[1], im X[1], re X[2], im X[2], …"""
    n = len(x)
    if n <= 2:
        return x if n == 1 else [x[0] + x[1], x[0] - x[1]]
    e, o, y = fft(x[::2], t), fft(x[1::2], t), [0] * n
    y[:2], y[n // 2:n // 2 + 2] = [e[0] + o[0], e[0] - o[0]], [e[1], -o[1]]
    for m, c, s in twiddles(n, t):
        (a, b), (re, im) = e[2 * m:2 * m + 2], o[2 * m:2 * m + 2]
        re, im = round_shift(c * re + s * im, t), round_shift(c * im - s * re, t)
        y[2 * m:2 * m + 2], y[n - 2 * m:n - 2 * m + 2] = [a + re, b + im], [a - re, im - b]
    return y


def ifft(y, t):
    """n times the block."""
    n = len(y)
    if n <= 2:
        return y if n == 1 else [y[0] + y[1], y[0] - y[1]]
    e, o, x = [0] * (n // 2), [0] * (n // 2), [0] * n
    e[:2], o[:2] = [y[0] + y[1], 2 * y[n // 2]], [y[0] - y[1], -2 * y[n // 2 + 1]]
    for m, c, s in twiddles(n, t):
        (a, b), (a_, b_) = y[2 * m:2 * m + 2], y[n - 2 * m:n - 2 * m + 2]
        e[2 * m:2 * m + 2], re, im = [a + a_, b - b_], a - a_, b + b_
        o[2 * m:2 * m + 2] = round_shift(c * re - s * im, t), round_shift(c * im + s * re, t)
    x[::2], x[1::2] = ifft(e, t), ifft(o, t)
    return x


def times(a, b, multiplier):
    """The product of two integers by a multiplier."""
    if multiplier == "mitchell":
        if a * b == 0:
            return 0
        i, j = abs(a).bit_length() - 1, abs(b).bit_length() - 1
        s = ((abs(a) - (1 << i)) << j) + ((abs(b) - (1 << j)) << i)
        return (s + max(s, 1 << i + j)) * (1 if (a < 0) == (b < 0) else -1)
    n = int(multiplier.partition(":")[2] or 0)
    return a * b - sum((a >> i & 1) * (b >> j & 1) << i + j for i in range(n) for j in range(n - i))


def multiplied(w, x, multiplier):
    """Two spectra, bin by bin."""
    y = each(lambda a, b: times(a, b, multiplier), w[:2], x[:2])
    for m in range(2, len(w), 2):
        (c, d), (a, b) = w[m:m + 2], x[m:m + 2]
        s1, s2, s3 = (times(*pair, multiplier) for pair in ((c, a + b), (a, d - c), (b, c + d)))
        y += [s1 - s3, s1 + s2]
    return y


def product(e, arrays, **vectors):
    """All p · k values of W x + b, where a vector x is given under the name of W; of several the joint product."""
    (first, *_), parts, y = vectors, [], []
    f, bias = e[first], arrays[f"{e['name']}.{first}.bias"]
    k, t, exact = f["block_size"], f["twiddle_bits"], f["spectrum"]["frac"] + f["weight"]["frac"]
    for name, x in vectors.items():
        spectrum, frac = e[name]["spectrum"], e[name]["input"]["frac"]
        seen = [[requantize(v, frac, spectrum) for v in fft(block, t)] for block in blocks(x, k)]
        parts.append((arrays[f"{e['name']}.{name}.weights"], seen))
    for i, finer in enumerate(f.get("row_shifts", [0] * (len(bias) // k))):
        bins = [multiplied(w, x, f.get("multiplier", "exact")) for weights, seen in parts
                for w, x in zip(weights[i], seen, strict=True)]
        a = each(lambda *column: requantize(sum(column), exact, f["product"]), *bins)
        last = f["product"]["frac"] + finer + k.bit_length() - 1 - f["output"]["frac"]
        y += [round_shift(v, last) for v in ifft(a, t)]
    return each(lambda v, b: sat(v + b, f["output"]["width"]), y, bias)


def activated(e, arrays, name, xs):
    """Sigmoid or tanh of each value, from a table."""
    f, (start, slope, base) = e[name], (arrays[f"{e['name']}.{name}.{part}"] for part in ("start", "slope", "base"))
    frac = f["slope"]["frac"] + f["input"]["frac"]

    def value(x):
        x = sat(x, f["input"]["frac"] + f["reach"] + 1)
        s = max(s for s, least in enumerate(start) if least <= x)
        u = {"pwl": x, "lut": x - start[s]}[f["method"]]
        return requantize(slope[s] * u + (base[s] << frac - f["base"]["frac"]), frac, f["output"])

    return each(value, xs)


def rectified(e, x):
    return [max(0, v) for v in x] if e["relu"] else x


def weighted(e, weights, xs, shift):
    """The sum of products of several vectors, and a shift, in the output's format."""
    made, frac = e["output_format"], e["input_format"]["frac"] + e["factor"]["frac"]
    sums = each(lambda *products: sum(products), *each(lambda w, x: each(lambda a, b: a * b, w, x), weights, xs))
    return rectified(e, each(lambda v, t: sat(round_shift(v, frac - made["frac"]) + t, made["width"]), sums, shift))


def states(e, xs, h, following):
    """The state behind each step, or behind the last one."""
    ys = [h]
    for x in xs:
        ys.append(following(x, ys[-1]))
    return ys[-1] if e.get("returns") == "last" else ys[1:]


def gru(e, arrays, xs):
    p, s, size = e["input_product"]["output"], e["recurrent_product"]["input"], e["hidden"]
    ys, h = [], [0] * size
    for x in xs:
        a = product(e, arrays, input_product=x, recurrent_product=h)
        r, z = (activated(e, arrays, "sigmoid", a[at:at + size]) for at in (0, len(a) // 2))
        if e["reset"] == "before":
            kept = each(lambda r, h: requantize(r * h, 2 * s["frac"], s), r, h)
            n = product(e, arrays, candidate_input=x, candidate_recurrent=kept)[:size]
        else:
            n_x, n_h = product(e, arrays, candidate_input=x), product(e, arrays, candidate_recurrent=h)
            n = each(lambda r, x, h: sat(x + round_shift(r * h, s["frac"]), p["width"]), r, n_x[:size], n_h[:size])
        n = activated(e, arrays, "tanh", n)
        h = each(lambda n, z, h: sat(n + round_shift(z * (h - n), s["frac"]), s["width"]), n, z, h)
        ys.append(h)
    return ys if e["returns"] == "sequence" else h


def rnn(e, arrays, xs):
    return states(e, xs, [0] * e["hidden"], lambda x, h: activated(
        e, arrays, "tanh", product(e, arrays, input_product=x, recurrent_product=h)[:e["hidden"]]))


def lstm(e, arrays, xs):
    p, s, cell, size = e["input_product"]["output"], e["recurrent_product"]["input"], e["cell"], e["hidden"]
    weights = arrays.get(f"{e['name']}.peephole", [[0] * size] * 3)

    def sigmoid(a, peephole, c):
        shift = e["peephole_format"]["frac"] + cell["frac"] - p["frac"]
        a = each(lambda a, w, c: sat(a + round_shift(w * c, shift), p["width"]), a, peephole, c)
        return activated(e, arrays, "sigmoid", a)

    def following(f, c, i, g):
        return sat(round_shift(f * c, s["frac"]) + round_shift(i * g, 2 * s["frac"] - cell["frac"]), cell["width"])

    ys, y, c = [], [0] * e["outputs"], [0] * size
    for x in xs:
        a = product(e, arrays, input_product=x, recurrent_product=y)
        i, f, g, o = (a[at:at + size] for at in range(0, len(a), len(a) // 4))
        i, f = sigmoid(i, weights[0], c), sigmoid(f, weights[1], c)
        c = each(following, f, c, i, activated(e, arrays, "tanh", g))
        o = sigmoid(o, weights[2], c)
        y = each(lambda o, t: requantize(o * t, 2 * s["frac"], s), o, activated(e, arrays, "tanh_cell", c))
        if "projection" in e:
            y = product(e, arrays, projection=y)[:e["outputs"]]
        ys.append(y)
    return ys if e["returns"] == "sequence" else y


def windowed(e, f, image):
    """The image of f of the list of pixels that the window sees, None outside the image."""
    down, across = each(
        lambda size, kernel, stride, pad, gap: [range(n, n + gap * kernel, gap) for n in range(
            -pad, size + pad - gap * (kernel - 1), stride)],
        e["grid"], *map(e["window"].get, ("kernel", "stride", "padding")), e["window"].get("dilation", [1, 1]))
    return [[f([image[y][x] if 0 <= y < len(image) and 0 <= x < len(image[0]) else None for y in ys for x in xs])
             for xs in across] for ys in down]


def conv(e, arrays, image):
    k, nothing = e["product"]["block_size"], [0] * e["inputs"]
    return windowed(e, lambda seen: linear(e, arrays, joined(joined(blocks(x or nothing, k)) for x in seen)), image)


def depthwise(e, arrays, image):
    weights, bias, nothing = arrays[f"{e['name']}.weights"], arrays[f"{e['name']}.bias"], [0] * e["inputs"]
    return windowed(e, lambda seen: weighted(e, weights, [x or nothing for x in seen], bias), image)


def pool(e, arrays, image):
    n = math.prod(e["window"]["kernel"])
    bits = n.bit_length() - 1 + (0 if n & n - 1 == 0 else 16)
    factor, frac = round(2 ** bits / n), e["input_format"]["frac"] + bits

    def channel(*seen):
        return max(seen) if e["mode"] == "max" else requantize(sum(seen) * factor, frac, e["output_format"])

    return windowed(e, lambda seen: each(channel, *filter(None, seen)), image)


def over_time(e, arrays, xs):
    s = e["output_format"]["frac"] - e["input_format"]["frac"]

    def mean(values):
        n, a = len(values), sum(values)
        return sat(((2 * a << max(0, s)) + (n << max(0, -s))) // (2 * n << max(0, -s)), e["output_format"]["width"])

    f = {"max": max, "mean": lambda values: mean(values[:65535]), "last": lambda values: values[-1]}[e["mode"]]
    return each(lambda *values: f(values), *xs)


def flatten(e, arrays, image):
    def flat(pixels):
        return joined(pixels if e["order"] == "pixels" else zip(*pixels, strict=True))

    return [flat(row) for row in image] if e["rows"] else flat(joined(image))


def join(e, sides, f):
    """f of the vectors at each step, or at each pixel."""
    if isinstance(sides[0][0], list):
        return each(lambda *parts: join(e, parts, f), *sides)
    return f(sides)


def combined(f):
    """f of the values of all sources at each place, brought to one binary point."""
    def by(e, arrays, sides):
        fracs = [form["frac"] for form in e["input_formats"]]
        most, form = max(fracs), e["output_format"]
        return join(e, sides, lambda vectors: rectified(e, each(lambda *values: requantize(
            f([x << most - frac for x, frac in zip(values, fracs, strict=True)]), most, form), *vectors)))

    return by


def gated(e, arrays, sides):
    frac = sum(form["frac"] for form in e["input_formats"])
    return join(e, sides, lambda vectors: rectified(e, each(
        lambda a, b: requantize(a * b, frac, e["output_format"]), *vectors)))


def concat(e, arrays, sides):
    return join(e, sides, lambda vectors: [
        requantize(x, form["frac"], e["output_format"])
        for vector, form in zip(vectors, e["input_formats"], strict=True) for x in vector])


def gate(e, arrays, sides):
    steps, vector = sides
    vector = [vector] * len(steps[0]) if isinstance(steps[0][0], list) else vector  # Of images.
    return gated(e, arrays, [steps, [vector] * len(steps)])


def linear(e, arrays, x):
    return rectified(e, product(e, arrays, product=x)[:e["outputs"]])


def scale(e, arrays, x):
    return weighted(e, [arrays[f"{e['name']}.scale"]], [x], arrays[f"{e['name']}.shift"])


def norm(e, arrays, x):
    n, z, y = len(x), e["normal"], e["output_format"]
    v, u = sum(a * a for a in x), x
    if e["mode"] == "layer":
        v, u = n * v - sum(x) ** 2, [n * a - sum(x) for a in x]
    v += e["epsilon"]
    h = (v.bit_length() + 1) // 2
    m = v * 2 ** 18 // 4 ** h
    start = math.floor(2 ** 10 / math.sqrt((m // 2 ** 10 + 0.5) / 256) + 0.5)
    root = round_shift(start * round_shift(3 * 2 ** 38 - m * start * start, 20), 13)
    z_frac = e["normal"]["frac"]
    return each(lambda u, g, b: sat(round_shift(
        sat(round_shift(u * root, 16 + h - z_frac), z["width"]) * g, z_frac + e["factor"]["frac"] - y["frac"]) + b,
        y["width"]), u, arrays[f"{e['name']}.gain"], arrays[f"{e['name']}.shift"])


def taps(e, arrays, xs):
    fill, d = [0] * (e["width"] - e["inputs"]), e["dilation"]
    past = [[0] * e["inputs"]] * ((e["taps"] - 1) * d) + xs
    return [joined(past[t + n * d] + fill for n in range(e["taps"])) for t in range(len(xs))]


def blend(e, arrays, sides):
    (z, x), made = (form["frac"] for form in e["input_formats"]), e["output_format"]
    most = max(x, made["frac"])
    return states(e, zip(*sides, strict=True), [0] * e["inputs"], lambda step, h: each(lambda z_, x_, h: sat(
        h + round_shift(z_ * ((x_ << most - x) - (h << most - made["frac"])), z + most - made["frac"]),
        made["width"]), *step, h))


def decay(e, arrays, xs):
    made, x = e["output_format"], e["input_format"]["frac"]
    product_frac = e["factor"]["frac"] + made["frac"]
    most, a, b = max(x, product_frac), arrays[f"{e['name']}.factors"], arrays.get(f"{e['name']}.turns")

    def driven(h):
        return each(lambda a, h: a * h, a, h) if b is None else joined(
            each(lambda a, b, z: [a * z[0] - b * z[1], b * z[0] + a * z[1]], a, b, blocks(h, 2)))

    return states(e, xs, [0] * e["inputs"], lambda step, h: each(lambda d, x_: requantize(
        (d << most - product_frac) + (x_ << most - x), most, made), driven(h), step))


JOINS = {"add": combined(sum), "difference": combined(lambda v: v[0] - v[1]), "maximum": combined(max),
         "minimum": combined(min), "product": gated, "concat": concat, "blend": blend, "gate": gate,
         "repeat": lambda e, arrays, sides: [sides[1]] * len(sides[0])}
LAYERS = linear, gru, lstm, rnn, over_time, conv, depthwise, pool, flatten, scale, norm, taps, decay
KINDS = {f.__name__: f for f in LAYERS} | JOINS | {
    "spiral": decay, "slice": lambda e, arrays, x: x[e["first"]:e["first"] + e["size"]],
    "activation": lambda e, arrays, x: activated(e, arrays, "table", x),
    "argmax": lambda e, arrays, x: [x.index(max(x))],
    "reverse": lambda e, arrays, xs: xs[::-1]}


def layer(e, arrays, x):
    if e["kind"] in ("linear", "scale", "activation", "argmax", "slice", "norm") and isinstance(x[0], list):
        return [layer(e, arrays, vector) for vector in x]
    return KINDS[e["kind"]](e, arrays, x)


def load(folder):
    """The network in a folder, a `pathlib.Path`, as a function of a sample of ``vectors.npz``."""
    network = json.loads((folder / "network.json").read_text())
    with np.load(folder / "weights.npz") as file:
        arrays = {name: file[name].tolist() for name in file.files}
    (given,), (last,) = network["inputs"], network["outputs"]

    def run(x):
        values = {given["name"]: blocks(x, given["grid"][1]) if "grid" in given else x}
        for e in network["nodes"]:
            taken = [values[source] for source in e["sources"]]
            values[e["name"]] = layer(e, arrays, taken if e["kind"] in JOINS else taken[0])
        return values[last]

    return run
