from dataclasses import replace

import pytest

from benchmarks.designs import network as shaped
from benchmarks.synthesis import Point, network
from circulant.boards.device import device
from circulant.boards.estimate import variants
from circulant.boards.estimate.estimate import Options, estimate
from circulant.hw.planner import plan
from circulant.hw.resources import parts
from circulant.sim.refusal import Refusal

CELLS = [Point("linear", 20, 24, 4, 12), Point("gru", 12, 20, 4, 20), Point("gru before", 8, 24, 4, 20),
         Point("lstm", 20, 24, 4, 26, projection=12)]


def circuit(made):
    """Memories of weights, transforms, and the number of products. Tables of activations may differ: a network that is
    quantized anew has others fitted."""
    found = parts(made, plan(made, 60))
    return found.memories[0], found.transforms, sum(each.copies for each in found.products)


@pytest.mark.parametrize("point", CELLS, ids=lambda point: point.title)
def test_larger_blocks_are_the_circuit_of_a_network_made_so(point):
    assert circuit(variants.with_blocks(network(point), 2)) == circuit(network(replace(point, block=8)))


@pytest.mark.parametrize("point", CELLS[:2], ids=lambda point: point.title)
def test_narrower_weights_are_the_circuit_of_a_network_made_so(point):
    assert circuit(variants.narrower_weights(network(point), 3)) == circuit(network(replace(point, weight_bits=9)))


@pytest.mark.parametrize("point", CELLS[2:], ids=lambda point: point.title)
def test_narrower_activations_are_those_of_a_network_made_so(point):
    found, real = variants.narrower_activations(network(point), 4), network(replace(point, activation_bits=12))
    assert variants.activation_bits(found) == variants.activation_bits(real) == 12
    assert circuit(found) == circuit(real)


@pytest.mark.parametrize(("bits", "change"), [
    (7, lambda made: variants.narrower_weights(made, 1)), (8, lambda made: variants.with_blocks(made, 2))],
    ids=["narrower weights", "larger blocks"])
def test_products_share_as_many_blocks_as_those_of_a_network_made_so(bits, change):
    """Weights of zeros would need no DSP block at all."""
    point = Point("linear", 64, 64, 8, 0, weight_bits=8, activation_bits=8)
    real = network(replace(point, weight_bits=bits, block=8 if bits == 7 else 16))
    found, wanted = (estimate(each, device("XCKU060"), Options(88, objective="throughput", dsp_packing="27x18"))
                     for each in (change(network(point)), real))
    assert found.taken["dsps"].used == wanted.taken["dsps"].used > 0
    assert found.figures.multipliers == wanted.figures.multipliers


@pytest.mark.parametrize("name", ["bidirectional", "lenet5"])
def test_layers_within_layers_and_over_images_change_too(name):
    made = shaped(name)
    larger = variants.with_blocks(made, 2)
    sizes = {layer: product.block_size for layer, product in _products(made).items()}
    assert {layer: product.block_size for layer, product in _products(larger).items()} == {
        layer: size if size == 1 else 2 * size for layer, size in sizes.items()}
    assert variants.weight_bits(variants.narrower_weights(made, 2)) == variants.weight_bits(made) - 2


def _products(made):
    return {f"{layer.name}.{role}": product for layer in made.layers
            for role, product in getattr(layer, "products", {}).items()}


def test_what_there_cannot_be_is_refused():
    made = network(CELLS[0])
    assert (variants.block_size(made), variants.weight_bits(made)) == (4, 12)
    with pytest.raises(Refusal, match="Block size must be"):
        variants.with_blocks(made, 32)
    with pytest.raises(Refusal, match="width of a format"):
        variants.narrower_weights(made, 12)
