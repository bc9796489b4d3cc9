from collections import Counter

import pytest

from circulant.hw.design import generate
from circulant.hw.faults import Place, sites_of
from circulant.sim.cosim.faulty import FaultBench
from circulant.sim.cosim.flip_flops import flip_flops
from circulant.sim.quantize.quantize import quantize
from circulant.sim.refusal import ToolError
from tests.refused import refused
from tests.sim import samples

MODEL = samples.model(5, 6, 3, k=(4, 4, 2))
NETWORK = quantize(MODEL, samples.data(MODEL), weight_bits=8)
VECTORS = NETWORK.vectors(samples.data(MODEL, count=6, seed=1))


@pytest.fixture(scope="module")
def design(tmp_path_factory):
    return generate(NETWORK, multipliers=20).write(tmp_path_factory.mktemp("faulty") / "design")


@pytest.fixture(scope="module")
def sites(design):
    return sites_of(design, NETWORK, multipliers=20)


@pytest.fixture(scope="module")
def bench(design):
    return FaultBench.of(design, VECTORS, patience=3000)


def test_the_circuit_equals_golden_under_the_same_faults(bench, sites):
    ends = Counter()
    for seed in range(36):
        how = {"count": 1} if seed % 3 == 0 else {"rate": (0.002, 0.05)[seed % 3 - 1]}
        faults = NETWORK.draw_faults(**how, seed=seed, memories=["weights", "bias"],
                                     kind=("flip", "flip", "stuck-at-0", "stuck-at-1")[seed % 4])
        found = bench.play(sites.faulted(faults), NETWORK.with_faults(faults).run_integers(VECTORS.inputs))
        assert (found.differing, found.words) == (0, 18), (seed, *map(str, faults[:3]))
        ends[found.end] += 1
    assert set(ends) == {"masked", "wrong"} and min(ends.values()) > 1, ends


def test_a_fault_that_golden_does_not_have_is_seen(bench, sites):
    faults = NETWORK.draw_faults(rate=0.05, seed=1)
    assert bench.play(sites.faulted(faults)).differing > 0
    other = NETWORK.draw_faults(rate=0.05, seed=2)
    assert bench.play(sites.faulted(faults), NETWORK.with_faults(other).run_integers(VECTORS.inputs)).differing > 0


def test_programs_with_wrong_bits_hang_or_are_wrong_or_masked(bench, sites):
    ends = {bit: bench.play(sites.flipped([Place("gru_program.hex", word, bit)])).end
            for word, bit in ((8, 2), (8, 7), (0, 10))}
    assert ends == {2: "wrong", 7: "hang", 10: "masked"}


@pytest.mark.soak
def test_a_flip_of_a_register_is_masked_or_wrong_or_hangs(design):
    bench = FaultBench.of(design, VECTORS, patience=3000, registers=True)
    found = {each.path.partition(".")[2]: each for each in flip_flops(design / "top.v", "circulant_top")}
    ends = {name: bench.play({}, flip=(found[name].path, 0, 200)).end for name in found
            if name.endswith(("queue.not_full", "first_2", "operands"))}
    assert set(ends.values()) == {"masked", "wrong", "hang"}, ends
    assert bench.play({}).end == "masked"
    with pytest.raises(ToolError, match=r"no register circulant_top\.none"):
        bench.play({}, flip=("circulant_top.none", 0, 200))


def test_images_that_the_design_lacks_are_refused(bench):
    assert refused(bench.play, {"gru.hex": "0"}).startswith(
        "The images of a run must be of the design's, gru_program.hex, ")
