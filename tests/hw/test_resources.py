import numpy as np
import pytest

from benchmarks.synthesis import LARGE, POINTS, network
from circulant.hw import generate
from circulant.hw.array.lanes import row_shape
from circulant.hw.array.layer_programs import layer_program
from circulant.hw.array.parts import Memory
from circulant.hw.emit.inventory import Inventory
from circulant.hw.plan.families import FAMILIES
from circulant.hw.planner import plan
from circulant.hw.resources import figures, inventory, layer_parts, predict
from circulant.sim.golden.bidirectional import Bidirectional
from circulant.sim.golden.residual import Residual
from circulant.sim.kinds.activation import Activation
from circulant.sim.kinds.conv import Conv
from circulant.sim.kinds.flatten import Flatten
from circulant.sim.kinds.gru import Gru
from circulant.sim.kinds.linear import Linear
from circulant.sim.kinds.over_time import FloatOverTime, OverTime
from circulant.sim.kinds.pool import Pool
from circulant.sim.kinds.scale import Scale
from circulant.sim.quantize.bitwidth_cost import weight_bits
from circulant.sim.quantize.quantize import quantize
from tests.hw import golden, test_cnn
from tests.random_networks import Random
from tests.sim import samples


def whole(design):
    """(products, memory bits) of all layers."""
    pairs = list(zip(design.network.stages, design.plans, strict=True))
    return (sum(count for layer, each in pairs for count, _, _ in layer_parts(layer, each).products),
            sum(memory.bits for layer, each in pairs for memory in layer_parts(layer, each).memories))


@pytest.mark.parametrize("at", [0, 4, 6, 7], ids=lambda at: POINTS[at].title)
def test_every_product_and_every_bit_of_the_verilog_is_foreseen(at):
    point = POINTS[at]
    design = generate(network(point), multipliers=point.multipliers, streams=point.streams, objective="throughput")
    assert whole(design) == (design.multipliers, design.memory_bits)


def test_a_network_is_the_sum_of_its_layers():
    design = generate(golden.network(2, 6, 4, outputs=3, k_out=1), multipliers=12, objective="throughput")
    assert whole(design) == (design.multipliers, design.memory_bits)
    assert predict(design.network, design.plans, "xcu").dsps == design.multipliers, "one block for a narrow product"
    assert figures(design.network, design.plans) == design.figures
    assert design.figures.per_step and design.figures.per_sequence, "the last layer works once a sequence"


def test_weights_are_stored_as_their_price_says():
    """The words of the lanes' memories that hold weights, the others being gaps of the plan, have all of the bits."""
    model = samples.model(8, 16, 4, k=(4, 4, 2))
    made = quantize(model, samples.data(model), tensors={
        "gru.input_product.weight_bits": 5, "gru.recurrent_product.weight_bits": 9, "last.weight_bits": 7})
    stored = 0
    for layer, each in zip(made.stages, plan(made, 30), strict=True):
        program, numbers = layer_program(layer, each.shape, each.spacing), 0
        images = [program.weights(r, c) for r in range(each.shape.rows) for c in range(each.shape.columns)]
        numbers = sum(np.any(image != 0, axis=-1).sum() * image.shape[-1] for image in images)
        assert numbers == sum(product.weights.size for product in layer.products.values()), "no word is all zeros"
        width = row_shape(program).weight_width
        assert Memory(len(images), program.matrices[0].product.block_size * width, program.cycles,
                      writable=False) in layer_parts(layer, each).memories
        stored += numbers * width
    assert stored == weight_bits(made), "the matrices of a layer are stored as wide as the widest"


@pytest.mark.parametrize(("family", "a", "b", "dsps"), [
    ("xcu", 27, 18, 1), ("xcu", 18, 27, 1), ("xcu", 28, 18, 2), ("xcu", 19, 19, 2), ("xc7", 26, 18, 2),
    ("ecp5", 18, 18, 1), ("ecp5", 19, 19, 1), ("ecp5", 20, 18, 2), ("ecp5", 28, 20, 4), ("xc7", 27, 19, 4),
    ("xcu", 4, 4, 0), ("xcu", 5, 4, 1)])
def test_dsp_blocks_of_a_product(family, a, b, dsps):
    assert FAMILIES[family].dsps(a, b) == dsps


@pytest.mark.parametrize(("family", "memory", "blocks"), [
    ("xcu", Memory(1, 36, 512), 0.5), ("xcu", Memory(1, 72, 512), 1), ("xcu", Memory(1, 72, 513), 2),
    ("xcu", Memory(3, 18, 1024), 1.5), ("xcu", Memory(1, 16, 64), 0), ("xcu", Memory(1, 16, 65), 0.5),
    ("xcu", Memory(1, 16, 17, writable=False), 0.5), ("xcu", Memory(1, 16, 16, writable=False), 0),
    ("xcu", Memory(1, 400, 500, asynchronous=True), 0), ("ecp5", Memory(2, 36, 512), 2),
    ("ecp5", Memory(1, 18, 1025), 2)])
def test_block_rams_of_a_memory(family, memory, blocks):
    assert FAMILIES[family].block_rams(memory) == blocks


def test_the_designs_of_the_papers_fit_their_device():
    for point in LARGE:
        made = network(point)
        found = predict(made, plan(made, point.multipliers), "xcu")
        assert found.dsps <= 2760 and found.block_rams <= 1080, point.title


def image_network(seed):
    made = test_cnn.model(seed)
    return quantize(made, np.random.default_rng(seed).normal(0, 1, (6, *made.shape)), **test_cnn.BITS)


def activated(random):
    """Functions with tables and without behind fully connected layers."""
    return [random.linear("first", 6, 9, 4), random.activation("bent", 9, "tanh"), random.linear("second", 9, 10, 2),
            random.activation("cut", 10, "clip", -0.5, 0.5), random.linear("out", 10, 3, 1)]


KINDS = {
    **{f"images {seed}": (image_network(seed), {"multipliers": 40 + 10 * seed, "argmax": seed == 2})
       for seed in (0, 1, 2, 4, 7)},
    "bidirectional": (quantize(both := samples.chain(samples.bidirectional("lstm", 9, 16, projection=8)),
                               samples.data(both)), {"multipliers": 70, "max_steps": 20}),
    "activations": (Random(1).network(activated(Random(2)), 6), {"multipliers": 24, "reloadable": True}),
    "mean": (Random(1).network([Random(2).gru("gru", 5, 9, 4, "sequence"), FloatOverTime("pool", 9, "mean"),
                                Random(3).linear("out", 9, 3, 2)], 5, sequence=True),
             {"multipliers": 30, "streams": 2}),
    "reloadable": (golden.network(4, 8, 4, outputs=5, k_out=1), {"multipliers": 12, "reloadable": True}),
    "interleaved": (golden.network(4, 8, 4, outputs=5, returns="sequence"), {"multipliers": 40, "streams": 3}),
}


@pytest.mark.parametrize(("network", "options"), KINDS.values(), ids=KINDS)
def test_what_a_plan_foresees_is_what_is_counted_in_the_design_whatever_its_layers(network, options):
    design = generate(network, **options, objective="throughput")
    options = {name: value for name, value in options.items() if name in ("max_steps", "reloadable")}
    counted, foreseen = Inventory.from_json(design.manifest["resources"]), inventory(
        design.network, design.plans, **options)
    assert sum(counted.products.values()) == design.multipliers
    assert sum(count * words * width for (words, width, _), count in counted.memories.items()) == design.memory_bits
    assert foreseen.products == counted.products
    assert foreseen.memories == counted.memories
    assert predict(design.network, design.plans, "xcu", **options).dsps > 0


def test_every_kind_of_layer_is_among_them():
    seen = {type(each) for network, _ in KINDS.values() for layer in network.stages for each in (
        layer, *(inner for chain in getattr(layer, "branches", {}).values() for inner in chain))}
    assert seen == {Activation, Bidirectional, Conv, Flatten, Gru, Linear, OverTime, Pool, Residual, Scale}, (
        "argmax is an option")
