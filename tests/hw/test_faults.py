import numpy as np
import pytest

from circulant.hw.array.plans import with_ports
from circulant.hw.design import generate
from circulant.hw.faults import Place, plans_of, sites, sites_of
from circulant.hw.planner import plan
from circulant.hw.top import images
from circulant.sim.quantize.quantize import quantize
from tests.refused import refused
from tests.sim import samples
from tests.sim.kinds import test_images


def quantized(model, x=None, **options):
    return quantize(model, samples.data(model) if x is None else x, **({"weight_bits": 8} | options))


def convolutions():
    made = test_images.small()
    return quantized(made, np.random.default_rng(0).uniform(-1, 1, (4, 3, 8, 7)))


NETWORKS = {
    "a GRU and a classifier": lambda: (quantized(samples.model(5, 6, 3, k=(4, 4, 2))), 20, "throughput"),
    "on a shared array": lambda: (quantized(samples.model(8, 16, 12, k=(4, 4, 4))), 40, "area"),
    "that resets before": lambda: (quantized(samples.model(5, 6, 3, reset="before", k=(2, 2, 1))), 9, "throughput"),
    "dense": lambda: (quantized(samples.model(3, 5, 3, k=(1, 1, 1))), 12, "throughput"),
    "an LSTM with projection and peepholes": lambda: (
        quantized(samples.chain(samples.lstm(6, 14, projection=9, peephole=True))), 30, "throughput"),
    "an RNN": lambda: (quantized(samples.chain(samples.rnn())), 12, "auto"),
    "both directions": lambda: (quantized(samples.chain(samples.bidirectional())), 30, "throughput"),
    "a perceptron": lambda: (quantized(samples.perceptron(9, 8, 5)), 20, "throughput"),
    "convolutions": lambda: (convolutions(), 100, "throughput"),
    "of several widths": lambda: (quantized(samples.model(8, 16, 4, k=(4, 4, 2)), tensors={
        "gru.input_product.weight_bits": 5, "gru.recurrent_product.weight_bits": 9}), 30, "throughput"),
    "rows with shifts": lambda: (quantized(samples.model(8, 16, 4, k=(4, 4, 2)), weight_scale="row"), 30, "throughput"),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_images_with_faults_are_those_of_the_network_with_them(name):
    network, multipliers, objective = NETWORKS[name]()
    plans = plan(network, multipliers, objective=objective)
    found = sites(network, plans)
    numbers = np.concatenate([np.unique(each) for each in found.numbers.values()])
    assert len(set(numbers[numbers > 0])) == sum(each.bits for each in network.memories.values()), "each bit is found"
    for seed, kind in enumerate(("flip", "stuck-at-0", "stuck-at-1", "flip")):
        faults = network.draw_faults(rate=0.05, seed=seed, memories=["weights", "bias"], kind=kind)
        other = network.with_faults(faults)
        due = images(other, plans_of(plans, other))
        assert {**found.images, **found.faulted(faults)} == due
        assert set(found.faulted(faults)) >= {image for image, text in due.items() if text != found.images[image]}


def first(network=None):
    network = network or quantized(samples.model(5, 6, 3, k=(4, 4, 2)))
    return network, sites(network, plan(network, 20))


def test_a_bit_of_an_image_is_a_bit_of_the_network():
    _, found = first()
    seen = 0
    for image, numbers in found.numbers.items():
        for word, bit in np.argwhere(numbers)[::7].tolist():
            fault = found.at(Place(image, word, bit))
            assert found.places(fault) == [Place(image, word, bit)]
            seen += 1
    assert seen > 100


def test_what_golden_cannot_follow_is_refused():
    _, found = first()
    assert refused(found.at, Place("gru_program.hex", 0, 0)) == (
        "Bit 0 of word 0 of gru_program.hex holds no weight and no bias, so golden has no such fault; play it in the "
        "simulator only")
    assert "A bit of an image must be in one of gru_weights_0_0.hex, " in refused(found.at, Place("gru.hex", 0, 0))
    assert "not bit 4000 of word 0 of gru_program.hex" in refused(found.at, Place("gru_program.hex", 0, 4000))
    assert refused(found.flipped, [Place("gru_program.hex", 0, 0)] * 2) == (
        "Each bit of an image must be named once, not 1 twice")
    (name, text), = found.flipped([Place("gru_program.hex", 1, 2)]).items()
    assert [int(a, 16) ^ int(b, 16) for a, b in zip(text.split(), found.images[name].split(), strict=True)][:3] == [
        0, 4, 0]
    wide, copied = first(NETWORKS["of several widths"]()[0])
    assert copied.held["copies"] > 0
    sign = next(place for fault in wide.draw_faults(rate=1, memories=["gru.input_product.weights"])
                if len(copied.places(fault)) > 1 for place in copied.places(fault))
    assert "is one of 5 copies of a bit, so golden cannot follow its flip alone; flip all of them" in refused(
        copied.at, sign)


def test_multipliers_that_were_made_for_the_weights_are_refused():
    network = quantized(samples.model(5, 8, 3, k=(4, 4, 2)), weight_bits=4, activation_bits=8)
    plans = with_ports(plan(network, 40), "27x18")
    assert refused(sites, network, plans) == (
        "Faults of a design need multipliers that take any weights, but two products in a DSP block suit these weights "
        "alone; set hardware.dsp_packing to 'none'")


def test_the_sites_of_a_folder_are_of_its_images(tmp_path):
    network = quantized(samples.model(5, 6, 3, k=(4, 4, 2)))
    folder = generate(network, multipliers=20).write(tmp_path / "design")
    found = sites_of(folder, network, multipliers=20)
    assert {image: (folder / image).read_text() for image in found.images} == dict(found.images)
    assert refused(sites_of, folder, network, multipliers=60).endswith(
        "must hold the design of network 'sample' with 60 multipliers and 1 streams, but it is another one; generate "
        "it again")
