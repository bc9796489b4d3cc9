"""A gate for each channel equals golden, whatever stalls, and keeps whole sequences and images."""
from itertools import chain

import numpy as np
import pytest

from circulant.hw import generate
from circulant.hw.kinds.gate import GateLayer
from circulant.hw.unit import unelaborated
from circulant.sim.arith.fixed import Format
from circulant.sim.cosim import icarus
from circulant.sim.kinds.gate import Gate
from circulant.sim.quantize.quantize import quantize
from circulant.sim.refusal import Refusal
from tests.hw.golden import blocks
from tests.hw.simulate import Transfers, run, sink, source
from tests.sim.kinds.test_gate import excited

FORMS = Format(8, 4), Format(10, 7)


STALLS = [((0.0, 0.0), 0.0), ((0.7, 0.0), 0.2), ((0.0, 0.9), 0.0), ((0.3, 0.3), 0.7)]


@pytest.mark.parametrize(("stalls", "out"), STALLS)
@pytest.mark.parametrize(("size", "k", "relu"), [(7, 4, False), (4, 4, True), (5, 2, False)])
def test_equals_golden_whatever_stalls(size, k, relu, stalls, out):
    layer, rng = Gate("gate", size, FORMS, Format(9, 5), relu), np.random.default_rng(1)
    dut = GateLayer(layer, k=k, beside=(0, 0))
    dut.depths[0] += 12 * -(-size // k)
    xs = [rng.integers(-128, 128, (1, steps, size)) for steps in (1, 5, 1, 1, 12, 2)]
    vs = [rng.integers(-512, 512, (1, size)) for _ in xs]
    wanted = list(chain.from_iterable(blocks([layer([x, v])[0]], k) for x, v in zip(xs, vs, strict=True)))
    came, left = [Transfers(), Transfers()], Transfers()
    run(dut, source("i_0", blocks([x[0] for x in xs], k), came[0], stall=stalls[0], seed=1),
        source("i_1", blocks(vs, k), came[1], stall=stalls[1], seed=2),
        sink("o", left, came, stall=out, quiet=200, count=len(wanted)))
    assert left.payloads == wanted


def test_all_steps_wait_until_the_vector_comes():
    layer = Gate("gate", 3, FORMS, Format(9, 5))
    dut, came, left = GateLayer(layer, k=4, beside=(0, 0)), [Transfers(), Transfers()], Transfers()
    dut.depths[0] += 50
    run(dut, source("i_0", blocks([np.ones((50, 3), np.int64)], 4), came[0]),
        sink("o", left, [came[0]], quiet=20, count=0))
    assert len(came[0].payloads) == 50 and not left.payloads


@pytest.mark.skipif(not icarus.available(), reason="needs Icarus Verilog: apt-get install iverilog")
@pytest.mark.parametrize("images", [False, True])
def test_squeeze_and_excitation_is_exact_in_verilog(images, tmp_path):
    x, lengths = np.random.default_rng(3).normal(0, 0.6, (6, 4, 6, 5) if images else (6, 12, 5)), {}
    if not images:
        lengths = {"lengths": np.array([1, 12, 1, 7, 2, 12])}
    network = quantize(excited(images), x, **lengths, activation_bits=8, weight_bits=6)
    design = generate(network, multipliers=60, max_steps=12)
    entry = next(each for each in design.manifest["layers"] if each["name"] == "gate")
    assert entry["waiting"][0] >= (30 if images else 12) * -(-network.nodes[-2].layer.inputs // entry["elements"])
    assert design.manifest["max_steps"] == (None if images else 12)
    design.write(tmp_path / "design")
    found = icarus.run(tmp_path / "design", network.vectors(x, **lengths))
    assert found.mismatches == 0 and found.words >= 150


def test_a_sample_that_is_too_large_is_refused():
    network = quantize(excited(), np.ones((2, 3, 5)))
    with unelaborated(), pytest.raises(Refusal, match=(
            r"^Layer 'gate' must keep a whole sample of at most 4,194,304 values until the rest comes, not 1000000 x 5"
            r"; use it behind a pooling, or lower hardware.max_steps$")):
        generate(network, multipliers=60, max_steps=1_000_000)


def test_interleaved_sequences_are_refused():
    network = quantize(excited(), np.ones((2, 3, 5)))
    with pytest.raises(Refusal, match=r"^Layer 'gate' keeps the steps of one sequence, but 2 are interleaved; set "):
        generate(network, multipliers=60, streams=2)
