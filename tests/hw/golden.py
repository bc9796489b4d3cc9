"""Small golden layers with random integers, and their vectors as the payloads of a stream."""
from collections.abc import Iterable
from typing import Any

import numpy as np

from circulant.sim.arith.circulant import Product, pad
from circulant.sim.arith.fixed import Format, Integers, round_shift, saturate
from circulant.sim.golden.network import Network
from circulant.sim.passes.layer import FloatLayer
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real import float_model
from tests.random_networks import Random

FORMATS = {"weight": Format(8, 6), "input": Format(10, 6), "spectrum": Format(10, 4), "product": Format(16, 9),
           "output": Format(11, 6)}
"""So narrow that spectra, sums and results of random numbers saturate now and then."""


def product(p: int, q: int, k: int, *, seed: int = 0, twiddle_bits: int = 9, bias: bool = True,
            **formats: Format) -> Product:
    """A random block-circulant matrix of p × q blocks of size k; ``formats`` other than `FORMATS`."""
    rng = np.random.default_rng((seed, p, q, k))
    chosen = FORMATS | formats
    weights = rng.integers(chosen["weight"].lo, chosen["weight"].hi + 1, (p, q, k))
    biases = rng.integers(chosen["output"].lo // 2, chosen["output"].hi // 2, p * k) * bias
    return Product(weights, biases, twiddle_bits=twiddle_bits, **chosen)


def numbers(form: Format, *shape: int, seed: int = 0) -> Integers:
    """Random numbers of a format, its extremes among them."""
    rng = np.random.default_rng((seed, *shape))
    values = rng.integers(form.lo, form.hi + 1, shape)
    return np.where(rng.random(shape) < 0.1, rng.choice([form.lo, form.hi], shape), values)


def network(k: int, hidden: int, inputs: int, *, outputs: int = 0, k_out: int = 0, returns: str = "last", seed: int = 0,
            **widths: Any) -> Network:
    """A quantized GRU, with a linear layer behind it when ``outputs`` are asked for."""
    rng = np.random.default_rng(seed)
    r = Random(rng=rng)
    layers: list[FloatLayer] = [r.gru("gru", inputs, hidden, k, returns)]
    if outputs:
        layers.append(r.linear("out", hidden, outputs, k_out or k))
    model = float_model.Model.chain("small", inputs, True, tuple(layers))
    return quantize(model, rng.normal(0, 1, (20, 6, inputs)), **widths)


def recurrent(kind: str, *, k: int, inputs: int, hidden: int, projection: int = 0, peephole: bool = False,
              returns: str = "sequence", seed: int = 0, **widths: Any) -> Any:
    """A quantized LSTM ("lstm"), a plain layer ("rnn"), or a GRU with its reset gate "after" or "before" the matrix;
    behind that there may be a "relu".

    Raises:
        Refusal: when the widths contradict each other.
    """
    rng = np.random.default_rng((seed, 5))
    r = Random(rng=rng, scale=0.7, even=True)
    if kind == "lstm":
        layer: FloatLayer = r.lstm("layer", inputs, hidden, k, returns, projection=projection, peephole=peephole)
    elif kind == "rnn":
        layer = r.rnn("layer", inputs, hidden, k, returns)
    else:
        reset, _, nonlinearity = kind.partition(" ")
        layer = r.gru("layer", inputs, hidden, k, returns, reset=reset, nonlinearity=nonlinearity or "tanh")
    model = float_model.Model.chain("random", inputs, True, (layer,))
    return quantize(model, rng.normal(0, 1, (8, 5, inputs)), **widths).layers[0]


def pre_step(layer: Any, pre: dict[str, Integers], state: Integers) -> dict[str, Integers]:
    """What a step makes of pre-activations by gate and the state, element by element: y and next.

    A GRU with its reset gate before the matrix gives r * h too, ``second``, and z, ``gate``. That the layer's `step`
    does this with what its products give has a test of its own.
    """
    if layer.kind == "rnn":
        return {"y": layer.tanh(pre["n"])}
    one, state_width, width = layer.output_format.frac, layer.output_format.width, layer.pre_format.width
    if layer.kind == "lstm":
        cell = layer.cell

        def peeked(gate: str, c: Integers) -> Integers:
            if layer.peephole is None:
                return pre[gate]
            shift = layer.peephole_format.frac + cell.frac - layer.pre_format.frac
            return saturate(pre[gate] + round_shift(layer.peephole["ifo".index(gate)] * c, shift), width)

        i, f = (layer.sigmoid(peeked(gate, state)) for gate in "if")
        c = saturate(round_shift(f * state, one) + round_shift(i * layer.tanh(pre["g"]), 2 * one - cell.frac),
                     cell.width)
        return {"y": saturate(round_shift(layer.sigmoid(peeked("o", c)) * layer.tanh_cell(c), one), state_width),
                "next": c}
    r, z = layer.sigmoid(pre["r"]), layer.sigmoid(pre["z"])
    more = {}
    if layer.reset == "after":
        argument = saturate(pre["nx"] + round_shift(r * pre["nh"], one), width)
    else:
        argument, more = pre["n"], {"second": saturate(round_shift(r * state, one), state_width), "gate": z}
    n = layer.tanh(argument)
    h = saturate(n + round_shift(z * (state - n), one), state_width)
    return {"y": h, "next": h, **more}


def blocks(sequences: Iterable[Integers], k: int) -> list[dict[str, Any]]:
    """Sequences (T, n) of vectors as blocks of k values, zero-padded; the last block of each sequence is marked."""
    payloads = []
    for vectors in sequences:
        size = -(-vectors.shape[-1] // k) * k
        rows = pad(vectors, size).reshape(-1, k).tolist()
        payloads += [{"data": row, "last": int(n == len(rows) - 1)} for n, row in enumerate(rows)]
    return payloads


def unmarked(payloads: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Blocks without the marks of the last ones."""
    return [{**payload, "last": 0} for payload in payloads]


def interleaved(layer: Any, streams: int, *, steps: int, seed: int = 0) -> tuple[list[Any], list[Any]]:
    """Blocks of the input of some streams whose steps take turns, and those of the output that golden gives.

    Each stream has ``steps`` steps of sequences of random lengths.
    """
    rng, k = np.random.default_rng((seed, 3)), layer.gates.block_size
    given: list[list[Any]] = [[] for _ in range(steps)]
    wanted: list[list[Any]] = [[] for _ in range(steps)]
    for n in range(streams):
        ends = sorted({int(t) for t in rng.integers(1, steps, 1 + steps // 3)} | {steps})
        for m, (start, stop) in enumerate(zip([0, *ends], ends, strict=False)):
            x = numbers(layer.input_format, stop - start, layer.inputs, seed=seed + 1000 * (10 * n + m))
            y = layer(x[None])[0]
            for t in range(start, stop):
                last = t == stop - 1
                given[t] += _marked(x[t - start], k, last)
                if layer.returns == "sequence" or last:
                    wanted[t] += _marked(y if layer.returns == "last" else y[t - start], k, last)
    return [block for step in given for block in step], [block for step in wanted for block in step]


def _marked(vector: Integers, k: int, last: bool) -> list[dict[str, Any]]:
    return [block if last else block | {"last": 0} for block in blocks([vector[None]], k)]
