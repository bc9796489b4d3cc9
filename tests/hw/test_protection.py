"""Designs whose memories have check bits: the same cycles and outputs, whatever single bits of them are wrong."""
import numpy as np
import pytest

from circulant.hw.array.plans import with_protection
from circulant.hw.design import generate
from circulant.hw.faults import Place, sites, sites_of
from circulant.hw.planner import plan
from circulant.hw.resources import figures
from circulant.hw.top import images
from circulant.sim.cosim import icarus, verify
from circulant.sim.cosim.faulty import FaultBench
from circulant.sim.quantize.quantize import quantize
from tests.hw.test_faults import NETWORKS
from tests.refused import refused
from tests.sim import samples

MODEL = samples.model(5, 6, 3, k=(4, 4, 2))
NETWORK = quantize(MODEL, samples.data(MODEL), weight_bits=8)
VECTORS = NETWORK.vectors(samples.data(MODEL, count=6, seed=1))


USUAL = "a GRU and a classifier", "on a shared array", "both directions", "convolutions"

KINDS = [pytest.param("scrub"), *(pytest.param(kind, marks=pytest.mark.soak) for kind in ("secded", "parity"))]
"""What is written right has all that the others have, but for memories that nobody writes."""


@pytest.mark.parametrize(("name", "protection"), [
    pytest.param(name, kind, marks=() if name in USUAL and kind == "scrub" else pytest.mark.soak)
    for name in NETWORKS for kind in ("scrub", "secded")])
def test_memories_have_the_bits_that_are_planned_and_cycles_are_the_same(name, protection):
    network, multipliers, objective = NETWORKS[name]()
    design = generate(network, multipliers=multipliers, objective=objective, protection=protection)
    plans = plan(network, multipliers, objective=objective)
    plain, planned = figures(network, plans), figures(network, with_protection(plans, protection))
    assert planned.memory_bits == design.memory_bits > plain.memory_bits
    assert vars(design.figures) | {"memory_bits": 0} == vars(plain) | {"memory_bits": 0}
    found = sites(network, plans, protection)
    assert dict(found.images) == design.images
    assert {name for name, text in images(network, plans).items() if design.images[name] != text} == set(found.codes)


def written(protection, folder):
    return generate(NETWORK, multipliers=20, protection=protection, objective="throughput").write(folder / "design")


@pytest.fixture(scope="module", params=KINDS)
def design(request, tmp_path_factory):
    return written(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def played(design):
    return sites_of(design, NETWORK, multipliers=20), FaultBench.of(design, VECTORS, patience=3000)


@pytest.mark.soak
def test_a_protected_design_equals_golden(design):
    found = verify(design, VECTORS)
    assert found.mismatches == 0 and found.words > 0


@pytest.mark.skipif(not icarus.available(), reason="needs Icarus Verilog: apt-get install iverilog")
@pytest.mark.parametrize("protection", ["scrub", "parity", pytest.param("secded", marks=pytest.mark.soak)])
def test_in_four_states_too(protection, tmp_path):
    assert icarus.run(written(protection, tmp_path), VECTORS).mismatches == 0


def coded(found, image):
    """The code of an image, and its words."""
    return found.codes[image], found.numbers[image].shape[0]


def test_a_flip_is_put_right_and_two_are_seen_or_one_with_parity(played):
    found, bench = played
    assert set(found.codes) == set(found.images) - {"gru_sigmoid.hex", "gru_tanh.hex"}
    assert bench.play({})._replace(cycles=0) == ("masked", 0, 18, 0, 0, False)
    rng, ends = np.random.default_rng(0), []
    for image in sorted(found.codes):
        code, words = coded(found, image)
        word = int(rng.integers(words))
        data, checks, _ = code.parts[0]
        one, two = (int(bit) for bit in rng.choice([*data, *checks], 2, replace=False))
        once = bench.play(found.flipped([Place(image, word, one)]))
        twice = bench.play(found.flipped([Place(image, word, one), Place(image, word, two)]))
        if code.corrects:
            assert (once.end, once.uncorrected) == ("masked", False)
            assert code.kind != "scrub" or once.corrected <= 1, "it was written right"
            assert not twice.corrected, "one that is read twice is no other one"
        else:
            assert not once.corrected
        ends.append((bool(once.corrected), once.uncorrected, twice.uncorrected))
    read = (True, False, True) if code.corrects else (False, True, False)
    assert ends.count(read) > len(ends) / 2 and set(ends) <= {read, (False, False, False)}, "words that are never read"


def test_many_flips_leave_what_golden_computes_with(played):
    found, bench = played
    if next(iter(found.codes.values())).kind == "parity":
        return
    seen = {"left": 0, "put right": 0}
    for seed in range(12):
        faults = NETWORK.draw_faults(rate=(0.002, 0.02)[seed % 2], seed=seed, memories=["weights", "bias"])
        texts = found.faulted(faults)
        left = found.remaining(texts)
        seen["left"] += len(left)
        seen["put right"] += len(faults) - len(left)
        result = bench.play(texts, NETWORK.with_faults(left).run_integers(VECTORS.inputs))
        assert result.differing == 0, seed
        assert result.uncorrected >= bool(left)
    assert min(seen.values()) > 0, seen


def test_every_flip_of_every_image_is_put_right():
    found = sites(NETWORK, plan(NETWORK, 20), "secded")
    for image in found.codes:
        code, words = coded(found, image)
        for word in range(words):
            for bit in range(code.bits):
                assert found.remaining(found.flipped([Place(image, word, bit)])) == []


def test_what_golden_does_not_have_is_refused():
    found = sites(NETWORK, plan(NETWORK, 20), "secded")
    assert "of gru_program.hex holds no weight and no bias" in refused(
        found.remaining, found.flipped([Place("gru_program.hex", 0, 0), Place("gru_program.hex", 0, 1)]))


def test_what_cannot_be_protected_is_refused():
    assert refused(generate, NETWORK, multipliers=20, protection="tmr") == (
        "A protection must be one of none, parity, secded, scrub, not 'tmr'")
