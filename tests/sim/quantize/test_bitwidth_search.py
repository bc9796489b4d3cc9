import itertools
from dataclasses import replace

import numpy as np
import pytest

from circulant.sim.passes.bitwidths import RULES, Widths
from circulant.sim.quantize.bitwidth_cost import CostModel, tiles, weight_bits
from circulant.sim.quantize.bitwidth_search import search_bitwidths
from circulant.sim.quantize.bitwidth_space import FIELDS, searched_bitwidths
from circulant.sim.quantize.evaluations import Evaluations
from circulant.sim.quantize.quantize import calibrate, quantize
from circulant.sim.refusal import Refusal
from tests.sim import samples

GRU = samples.model(5, 8, 3, k=(4, 4, 1))
VECTORS = samples.model(6, 8, 4, k=(8, 4, 2), sequence=False)
START = Widths(activation_bits=11, weight_bits=9)


def judged(model, x, counted=None, folder=None):
    """The loss is the greatest distance of an output from the model's, in hundredths."""
    exact = model.run(x)

    def lost(network):
        if counted is not None:
            counted.append(network.hash)
        return 100 * float(np.abs(network.run(x).real - exact).max())

    return Evaluations(lost, model, x[:8], subject="test", folder=folder)


@pytest.fixture(scope="module")
def picked():
    x = samples.data(GRU, count=8, steps=4)
    return search_bitwidths(GRU, calibrate(GRU, x), START, judged(GRU, x), budget=5.0), x


def test_the_budget_is_kept_and_everything_is_cheaper(picked):
    found, x = picked
    exact = GRU.run(x)
    assert 100 * np.abs(found.network.run(x).real - exact).max() == pytest.approx(found.lost)
    assert found.lost_start < found.lost <= found.budget
    assert found.cost < 0.8
    assert found.network.hash == quantize(GRU, calibrate(GRU, x), **found.widths.as_dict()).hash
    assert weight_bits(found.network) < weight_bits(quantize(GRU, x, **START.as_dict()))
    assert [row.name for row in found.rows] == searched_bitwidths(found.network)
    assert all(row.picked <= row.start and row.noise is not None for row in found.rows)


def test_no_width_can_go_down_alone(picked):
    """By any of the ways that the search has, unless that would be far louder than the place on the path."""
    found, x = picked
    peaks, loss = calibrate(GRU, x), judged(GRU, x)
    for row in found.rows:
        layer, _, field = row.name.rpartition(".")
        if row.picked == RULES[field][0]:
            continue
        lower = (replace(found.widths, input_bits=row.picked - 1) if not layer else replace(
            found.widths, tensors={**found.widths.tensors, row.name: row.picked - 1}))
        network = quantize(GRU, peaks, **lower.as_dict())
        assert loss.lost(network) > found.budget or loss.noise(network) > loss.noise(found.network), row.name


def test_what_is_given_stays():
    x = samples.data(GRU, count=8, steps=4)
    start = replace(START, spectrum_bits=10, tensors={"gru.weight_bits": 8, "last.output_bits": 10})
    found = search_bitwidths(GRU, calibrate(GRU, x), start, judged(GRU, x), budget=5.0)
    fixed = {row.name: row.picked for row in found.rows if row.fixed}
    assert fixed == {"gru.weight_bits": 8, "gru.spectrum_bits": 10, "last.spectrum_bits": 10, "last.output_bits": 10}
    gru, last = found.network.layers
    assert {product.weight.width for product in gru.products.values()} == {8}
    assert (last.product.spectrum.width, last.output_format.width) == (10, 10)
    assert last.product.weight.width < 9


def test_the_kinds_that_are_picked():
    x = samples.data(GRU, count=8, steps=4)
    found = search_bitwidths(GRU, calibrate(GRU, x), START, judged(GRU, x), budget=5.0, fields=("weight_bits",))
    assert {row.name for row in found.rows if row.picked < row.start} == {"gru.weight_bits", "last.weight_bits"}


def test_the_exhaustive_search_finds_the_cheapest():
    x = samples.data(VECTORS)
    peaks, loss = calibrate(VECTORS, x), judged(VECTORS, x)
    found = search_bitwidths(VECTORS, peaks, START, loss, budget=3.0, search="exhaustive", fields=("weight_bits",))
    price = CostModel(quantize(VECTORS, peaks, **START.as_dict()), START)
    costs = {}
    for pair in itertools.product(range(2, 10), repeat=2):
        bits = replace(START, tensors={"first.weight_bits": pair[0], "last.weight_bits": pair[1]})
        if loss.lost(quantize(VECTORS, peaks, **bits.as_dict())) <= 3.0:
            costs[pair] = price(bits)
    assert found.cost == pytest.approx(min(costs.values()))
    assert found.cost < 1
    greedy = search_bitwidths(VECTORS, peaks, START, loss, budget=3.0, fields=("weight_bits",))
    assert found.cost <= greedy.cost


def test_evaluations_are_found_again(tmp_path):
    """Also when the search was interrupted in between."""
    x, first, second = samples.data(VECTORS), [], []
    peaks = calibrate(VECTORS, x)

    class Stop(Exception):
        pass

    def stop(task, done, total, note):
        if task.startswith("one bit less") and done == 3:
            raise Stop

    with pytest.raises(Stop):
        search_bitwidths(VECTORS, peaks, START, judged(VECTORS, x, first, tmp_path), budget=3.0, progress=stop)
    assert first
    again = search_bitwidths(VECTORS, peaks, START, judged(VECTORS, x, second, tmp_path), budget=3.0)
    assert not set(first) & set(second), "nothing is measured twice"
    assert again.cached >= len(first)
    last_made = []
    last = search_bitwidths(VECTORS, peaks, START, judged(VECTORS, x, last_made, tmp_path), budget=3.0)
    assert not last_made
    assert (last.network.hash, last.rows) == (again.network.hash, again.rows)
    for path in tmp_path.iterdir():
        path.write_text("{")
    damaged = judged(VECTORS, x, last_made, tmp_path)
    assert damaged.lost(last.network) == last.lost
    assert last_made, "a damaged file is measured again"


@pytest.mark.parametrize(("changes", "message"), [
    ({"budget": 1e-6}, r"^The budget must be at least .* points, which the largest widths lose already, not "
                       r"1e-06; raise it, or weight_bits and activation_bits$"),
    ({"budget": float("nan")}, r"^The budget must be at least 0 points of the metric, not nan;"),
    ({"search": "greed"}, r"^The search must be 'greedy' or 'exhaustive', not 'greed'; did you mean 'greedy'\?"),
    ({"fields": ("weights",)}, r"^A kind of width to choose must be one of weight_bits, .*, not 'weights'"),
    ({"search": "exhaustive"}, r"^An exhaustive search must have at most 4,096 combinations, not [0-9,]+ of 1"),
    ({"fields": ("cell_bits",)}, r"^At least one width must be left to choose, but all are given;"),
])
def test_refusals(changes, message):
    x = samples.data(GRU, count=8, steps=4)
    with pytest.raises(Refusal, match=message):
        search_bitwidths(GRU, calibrate(GRU, x), START, judged(GRU, x), **({"budget": 5.0} | changes))


def test_data_that_never_exercises_a_tensor():
    x = samples.data(GRU)[:, :1]
    with pytest.raises(Refusal, match=r"^Calibration data must exercise every tensor whose width is chosen, but "
                                      r"gru\.recurrent_product\.input, .* are always zero; give representative data$"):
        search_bitwidths(GRU, calibrate(GRU, x), START, judged(GRU, x), budget=5.0)


@pytest.mark.parametrize("layer", [samples.lstm(5, 8, projection=4, peephole=True), samples.bidirectional("lstm")],
                         ids=["lstm", "bidirectional"])
def test_other_layers(layer):
    model = samples.chain(layer)
    x = samples.data(model, count=6, steps=3)
    start = Widths(activation_bits=10, weight_bits=8)
    found = search_bitwidths(model, calibrate(model, x), start, judged(model, x), budget=8.0,
                 fields=("weight_bits", "cell_bits", "state_bits"))
    assert {row.name.rpartition(".")[2] for row in found.rows} == set(FIELDS) - {"twiddle_bits"}
    assert found.lost <= 8.0
    assert found.cost < 1


def test_the_price():
    network = quantize(GRU, samples.data(GRU, count=8, steps=4), **START.as_dict())
    price = CostModel(network, START, memory_share=1.0)
    assert price(START) == 1
    third = replace(START, weight_bits=3)
    assert price.bill(third).memory == price.bill(START).memory / 3 == weight_bits(network) / 3
    assert price.bill(replace(START, tensors={"gru.input_product.weight_bits": 6})).memory == price.bill(
        START).memory, "an array stores all weights as wide as the widest"
    assert (tiles(17, 12, None), tiles(18, 25, (27, 18)), tiles(19, 19, (27, 18)), tiles(28, 28, (27, 18))) == (
        204, 1, 2, 4)
    with pytest.raises(Refusal, match=r"^memory_share must be from 0 to 1, not 2;"):
        CostModel(network, START, memory_share=2)


def test_peepholes_are_weights_too():
    models = [samples.chain(samples.lstm(peephole=peephole)) for peephole in (False, True)]
    plain, peeping = (quantize(each, samples.data(each), **START.as_dict()) for each in models)
    more = weight_bits(peeping) - weight_bits(plain)
    assert more == peeping.layers[0].peephole.size * peeping.layers[0].peephole_format.width > 0
    with_it, without = (CostModel(each, START).bill(START) for each in (peeping, plain))
    assert with_it.memory - without.memory == peeping.layers[0].peephole.size * START.weight_bits
