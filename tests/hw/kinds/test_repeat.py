"""A repeated vector equals golden, whatever stalls and however long a sequence is."""
from itertools import chain

import numpy as np
import pytest

from circulant.hw import generate
from circulant.hw.kinds.repeat import LENGTHS, RepeatLayer
from circulant.sim.arith.fixed import Format
from circulant.sim.cosim import icarus
from circulant.sim.kinds.add import FloatAdd
from circulant.sim.kinds.repeat import FloatRepeat, Repeat
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real.float_model import Model
from circulant.sim.shape.graph import Input, Node
from circulant.sim.shape.window import Flow
from tests.hw.golden import blocks
from tests.hw.simulate import Transfers, run, sink, source
from tests.random_networks import Random
from tests.sim.kinds.test_repeat import autoencoder

COUNTED, FORM = Format(7, 3), Format(9, 5)


def repeated(dut, layer, lengths, stalls, *, streams):
    """The blocks that are given for sequences of these lengths, a step of each stream in turn; those of golden."""
    rng = np.random.default_rng(1)
    turns = [(rng.integers(-9, 9, (streams, steps, layer.counted)), rng.integers(-99, 99, (streams, layer.inputs)))
             for steps in lengths]

    def interleaved(parts):
        own = [blocks([part], dut.k) for part in parts]
        beats = len(own[0]) // len(parts[0])
        return [block for t in range(len(parts[0])) for each in own for block in each[t * beats:(t + 1) * beats]]

    steps = list(chain.from_iterable(interleaved(list(x)) for x, _ in turns))
    vectors = list(chain.from_iterable(interleaved([each[None] for each in v]) for _, v in turns))
    wanted = list(chain.from_iterable(interleaved(list(layer([x, v]))) for x, v in turns))
    came, left = [Transfers(), Transfers()], Transfers()
    run(dut, source("i_0", steps, came[0], stall=stalls[0], seed=1),
        source("i_1", vectors, came[1], stall=stalls[1], seed=2),
        sink("o", left, came, stall=stalls[2], quiet=200, count=len(wanted)))
    return left.payloads, wanted


STALLS = [((0.0, 0.0), 0.0), ((0.7, 0.0), 0.2), ((0.0, 0.9), 0.0), ((0.3, 0.3), 0.7)]


@pytest.mark.parametrize(("stalls", "out"), STALLS)
@pytest.mark.parametrize(("counted", "size", "k", "streams"), [(3, 7, 4, 1), (5, 3, 4, 1), (3, 5, 2, 3)])
def test_equals_golden_whatever_stalls(counted, size, k, streams, stalls, out):
    layer = Repeat("repeat", size, counted, COUNTED, FORM)
    dut = RepeatLayer(layer, k=k, beside=(0, 0), streams=streams)
    lengths = [1, 5, 1, 1, 1, 1, 1, 1, 40, 2, 3]
    found, wanted = repeated(dut, layer, lengths, (*stalls, out), streams=streams)
    assert found == wanted


def test_a_vector_that_waits_for_no_sequence_leaves_with_each_of_its_steps():
    """Of a sequence that has not ended, all steps but the last one leave."""
    layer = Repeat("repeat", 3, 2, COUNTED, FORM)
    dut, came, left = RepeatLayer(layer, k=4, beside=(0, 0)), [Transfers(), Transfers()], Transfers()
    steps, vectors = blocks([np.ones((9, 2), np.int64)], 4)[:-1], blocks([np.array([[4, 5, 6]])], 4)
    run(dut, source("i_0", steps, came[0]), source("i_1", vectors, came[1]), sink("o", left, came, quiet=50, count=8))
    assert left.payloads == [{"data": [4, 5, 6, 0], "last": 0}] * 8


def test_lengths_of_sequences_wait_and_then_steps_do():
    """Without vectors as many sequences end as there is room for."""
    layer = Repeat("repeat", 3, 2, COUNTED, FORM)
    dut, came, left = RepeatLayer(layer, k=4, beside=(0, 0)), [Transfers(), Transfers()], Transfers()
    steps = blocks([np.ones((1, 2), np.int64)] * 30, 4)
    with pytest.raises(AssertionError, match=rf"^Deadlock: \[{LENGTHS}\] payloads were accepted and 0 given"):
        run(dut, source("i_0", steps, came[0]), sink("o", left, [came[0]], quiet=60, count=0))


@pytest.mark.skipif(not icarus.available(), reason="needs Icarus Verilog: apt-get install iverilog")
@pytest.mark.parametrize("streams", [1, 2])
def test_an_autoencoder_is_exact_in_verilog(streams, tmp_path):
    """Sequences from one step to far more than waits anywhere, back to back and with stalls."""
    lengths = np.array([1, 60, 1, 7, 2, 15]) if streams == 1 else np.array([5, 5, 1, 1, 15, 15])
    x = np.random.default_rng(3).normal(0, 0.6, (6, lengths.max(), 5))
    network = quantize(autoencoder(), x, lengths=lengths, activation_bits=8, weight_bits=6)
    design = generate(network, multipliers=60, streams=streams)
    assert design.manifest["late"] and design.manifest["max_steps"] is None
    assert "cycles" in design.manifest["estimates"] and design.manifest["latency_spaced"] is None
    design.write(tmp_path / "design")
    found = icarus.run(tmp_path / "design", network.vectors(x, lengths=lengths))
    assert found.mismatches == 0 and found.words >= lengths.sum() * 5


def beside(vector_input):
    """The sum of each step and a vector for all of them, which is an input, or made of the sequence."""
    r = Random(5)
    first = Node(r.linear("v", 4, 5, 1), ("c",)) if vector_input else Node(r.rnn("v", 5, 5, 1, "last"), ("x",))
    nodes = first, Node(FloatRepeat("repeat", 5, 5), ("x", "v")), Node(FloatAdd("sum", 5), ("x", "repeat"))
    inputs = Input("x", Flow(5, sequence=True)), *((Input("c", Flow(4)),) if vector_input else ())
    return Model("beside", inputs, nodes, ("sum",))


@pytest.mark.skipif(not icarus.available(), reason="needs Icarus Verilog: apt-get install iverilog")
def test_a_vector_of_another_input_is_joined_with_each_step(tmp_path):
    rng = np.random.default_rng(3)
    x = {"x": rng.normal(0, 0.6, (5, 90, 5)), "c": rng.normal(0, 0.6, (5, 4))}
    network = quantize(beside(True), x, activation_bits=8, weight_bits=6)
    generate(network, multipliers=40).write(tmp_path / "design")
    found = icarus.run(tmp_path / "design", network.vectors(x))
    assert found.mismatches == 0 and found.words >= 5 * 90 * 5


@pytest.mark.skipif(not icarus.available(), reason="needs Icarus Verilog: apt-get install iverilog")
def test_steps_wait_for_a_vector_of_their_whole_sequence(tmp_path):
    x, lengths = np.random.default_rng(3).normal(0, 0.6, (6, 12, 5)), np.array([12, 1, 12, 3, 12, 5])
    network = quantize(beside(False), x, lengths=lengths, activation_bits=8, weight_bits=6)
    design = generate(network, multipliers=40, max_steps=12)
    entry = next(each for each in design.manifest["layers"] if each["name"] == "sum")
    assert design.manifest["max_steps"] == 12 and entry["waiting"][0] > 12 + entry["waiting"][1] // 2
    design.write(tmp_path / "design")
    found = icarus.run(tmp_path / "design", network.vectors(x, lengths=lengths))
    assert found.mismatches == 0 and found.words >= lengths.sum() * 5
