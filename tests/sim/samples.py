"""Random parts of golden models, and models to quantize, for tests."""
import dataclasses
import itertools

import numpy as np

from circulant.sim.arith.circulant import JointProduct, Product
from circulant.sim.arith.fixed import Format
from circulant.sim.arith.segments import fit_pwl
from circulant.sim.error.error_bound import error_bound
from circulant.sim.golden.network import Network
from circulant.sim.kinds.gru import FloatGru, Gru
from circulant.sim.kinds.linear import FloatLinear, Linear
from circulant.sim.quantize.quantize import quantize
from circulant.sim.quantize.quantize_like import quantize_like
from circulant.sim.real import float_model
from circulant.sim.shape.graph import Node
from tests.random_networks import Random


def product(p=2, q=3, k=4, *, weight=(12, 11), input=(16, 15), spectrum=(17, 12), product=(24, 16), output=(16, 10),
         twiddle_bits=16, weights="random", bias="random", seed=0):
    """A product with random or the greatest weights of its formats (width, frac)."""
    rng = np.random.default_rng(seed)
    weight, output = Format(*weight), Format(*output)
    fill = {"random": lambda form, shape: rng.integers(form.lo, form.hi + 1, shape),
            "extreme": lambda form, shape: rng.choice([form.lo, form.hi], shape),
            "least": lambda form, shape: np.full(shape, form.lo), "zero": lambda form, shape: np.zeros(shape, np.int64)}
    return Product(fill[weights](weight, (p, q, k)), bias=fill[bias](output, (p * k,)), weight=weight,
                   input=Format(*input),
                   spectrum=Format(*spectrum), product=Format(*product), output=output, twiddle_bits=twiddle_bits)


def linear(inputs=5, outputs=7, k=4, *, name="linear", relu=False, **formats):
    return Linear(name, inputs, outputs, product(-(-outputs // k), -(-inputs // k), k, **formats), relu)


def gru(inputs=5, hidden=6, k=4, *, reset="after", name="gru", returns="last", input=(16, 12), pre=(16, 11),
        state=(16, 15), segments=32, seed=0):
    """A layer with random integers, whose gates now and then saturate."""
    rows, columns = -(-hidden // k), (-(-inputs // k), -(-hidden // k))

    def part(gates, vector, bias="random"):
        return product(gates * rows, columns[vector], k, weight=(10, 10), input=(input, state)[vector], output=pre,
                       spectrum=(18, state[1] - 2), product=(26, 16), bias=bias, seed=seed + 10 * gates + vector)

    joint = [JointProduct((part(gates, 0), part(gates, 1, "zero"))) for gates in (2, 1)]
    candidate = (joint[1], None) if reset == "before" else (part(1, 0), part(1, 1))
    tables = [fit_pwl(function, Format(*pre), Format(*state), segments) for function in ("sigmoid", "tanh")]
    return Gru(name, inputs=inputs, hidden=hidden, returns=returns, reset=reset, gates=joint[0],
               candidate=candidate[0], candidate_recurrent=candidate[1], sigmoid=tables[0], tanh=tables[1])


def model(inputs=5, hidden=6, outputs=3, *, k=(4, 4, 1), sequence=True, returns="last", reset="after", scale=0.6,
          seed=0):
    """A GRU and a Linear in float64, or two Linear layers without sequences; block sizes of the three matrices."""
    rng = np.random.default_rng(seed)

    def first_columns(rows, columns, k):
        return rng.normal(0, scale, (-(-rows // k), -(-columns // k), k))

    if sequence:
        first = FloatGru("gru", inputs=inputs, hidden=hidden,
                         weight_ih=np.stack([first_columns(hidden, inputs, k[0]) for _ in range(3)]),
                         weight_hh=np.stack([first_columns(hidden, hidden, k[1]) for _ in range(3)]),
                         bias_ih=rng.normal(0, scale, (3, hidden)), bias_hh=rng.normal(0, scale, (3, hidden)),
                         returns=returns, reset=reset)
    else:
        first = FloatLinear("first", inputs, hidden, first_columns(hidden, inputs, k[0]),
                            rng.normal(0, scale, hidden))
    last = FloatLinear("last", hidden, outputs, first_columns(outputs, hidden, k[2]),
                       rng.normal(0, scale, outputs))
    return float_model.Model.chain("sample", inputs, sequence, (first, last))


def perceptron(*sizes, k=(4, 2), shape=(), scale=0.6, seed=0):
    """Linear layers in float64, all but the last one with a ReLU; block sizes of the first ones, then 1."""
    r, last = Random(rng=np.random.default_rng(seed), scale=scale), len(sizes) - 2
    layers = [r.linear(f"fc{n + 1}", inputs, outputs, k[n] if n < len(k) else 1, relu=n < last)
              for n, (inputs, outputs) in enumerate(itertools.pairwise(sizes))]
    return float_model.Model.chain("perceptron", sizes[0], False, tuple(layers), shape)


def rnn(inputs=5, hidden=6, *, k=4, name="rnn", returns="sequence", nonlinearity="tanh", scale=0.6, seed=0):
    """A plain recurrent layer in float64."""
    return Random(rng=np.random.default_rng(seed), scale=scale).rnn(
        name, inputs, hidden, k, returns, nonlinearity=nonlinearity)


def lstm(inputs=5, hidden=6, *, k=4, projection=0, peephole=False, name="lstm", returns="sequence", scale=0.6, seed=0):
    """An LSTM in float64."""
    return Random(rng=np.random.default_rng(seed), scale=scale).lstm(
        name, inputs, hidden, k, returns, projection=projection, peephole=peephole)


def bidirectional(kind="gru", inputs=5, hidden=6, *, k=4, name="both", returns="sequence", scale=0.6, **options):
    """Two GRUs or two LSTMs in float64."""
    def make(direction, seed):
        if kind == "lstm":
            layer = lstm(inputs, hidden, k=k, returns=returns, scale=scale, seed=seed, **options)
        else:
            layer = model(inputs, hidden, k=(k, k, 1), returns=returns, scale=scale, seed=seed, **options).layers[0]
        return dataclasses.replace(layer, name=f"{name}.{direction}")

    return float_model.Bidirectional(name, make("forward", 1), make("backward", 2))


def chain(*layers):
    """A model of recurrent layers."""
    return float_model.Model.chain("chain", layers[0].inputs, True, layers)


def rebuilt(graph, *layers):
    """The graph with other layers, whose names may differ, in the places of its own."""
    names = {node.name: layer.name for node, layer in zip(graph.nodes, layers, strict=True)}
    nodes = tuple(Node(layer, tuple(names.get(source, source) for source in node.sources))
                  for layer, node in zip(layers, graph.nodes, strict=True))
    return dataclasses.replace(graph, nodes=nodes, outputs=tuple(names[name] for name in graph.outputs))


def data(model, count=20, steps=7, seed=0):
    """Inputs from -1 to 1."""
    shape = (count, steps, model.flow.size) if model.sequence else (count, model.flow.size)
    return np.random.default_rng(seed).uniform(-1, 1, shape)


def comes_back_within_the_bound(model, x, folder):
    """The network of a model is within its bound, which is not loose, and itself from its file and by its formats."""
    network = quantize(model, x)
    error, bound = np.abs(network.run(x).real - model.run(x)), error_bound(network, model, x)
    assert (error <= bound).all() and error.max() > bound.max() / 50
    network.save(folder)
    assert Network.load(folder).hash == network.hash
    assert quantize_like(model, network).hash == network.hash


def each_is_as_by_itself(model, x, lengths):
    """Sequences of different lengths give what each gives alone, whatever stands behind their ends."""
    network, x = quantize(model, x, lengths=lengths), x.copy()
    x[np.arange(x.shape[1]) >= lengths[:, None]] = 7.0  # What nobody reads.
    found = network.run(x, lengths=lengths).integers
    for n, steps in enumerate(lengths):
        alone = network.run(x[n:n + 1, :steps], lengths=lengths[n:n + 1]).integers[0]
        assert np.array_equal(found[n, :steps], alone) and not found[n, steps:].any()
