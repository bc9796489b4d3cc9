"""Columns of layers over chips: shares of sums in the spectral domain, added up before anything is rounded."""
from dataclasses import replace
from itertools import accumulate, pairwise

import numpy as np
import pytest

from circulant.hw.chips.columns import column_share, column_sum, even_columns, unsummed
from circulant.hw.chips.cut import Place, cut
from circulant.hw.chips.folders import generate_chips
from circulant.hw.chips.plans import planned, shared
from circulant.sim import design
from circulant.sim.chips import SYSTEM, drawn, roughened
from circulant.sim.cosim import verify
from circulant.sim.refusal import Refusal
from tests.hw.chips.networks import ROWS, cluster, data, pair, tagger
from tests.random_networks import Random


def linears(seed, sizes, block=4):
    """Linear layers one behind the other."""
    r = Random(seed)
    return r.network([r.linear(f"l{n}", *each, block, relu=not n) for n, each in enumerate(pairwise(sizes))], sizes[0])


@pytest.mark.parametrize(("block", "multiplier"), [
    (1, "exact"), (2, "exact"), (4, "mitchell"), (8, "exact"), (8, "truncated:4"), (16, "exact")])
def test_sums_of_shares_give_every_bit_of_the_layer(block, multiplier):
    """Also where the last block of inputs and of outputs is not whole."""
    network = linears(block, (5 * block + block // 2, 3 * block - block // 4), block)
    layer = replace(network.layers[0], product=replace(network.layers[0].product, multiplier=multiplier))
    x = network.integers(np.random.default_rng(0).normal(0, 2, (50, network.flow.size)))
    blocks = even_columns(layer, [1, 2, 2])
    ends = [0, *accumulate(blocks)]
    shares = [column_share(layer, f"share{n}", *each) for n, each in enumerate(pairwise(ends))]
    sums = [share(x[:, begin * block:end * block]) for share, (begin, end) in zip(shares, pairwise(ends), strict=True)]
    assert sum(share.inputs for share in shares) == layer.inputs
    assert (column_sum(layer, [share.output_format for share in shares])(sums) == layer(x)).all()
    for share, each in zip(shares, sums, strict=True):
        assert np.abs(each).max() <= share.output_format.hi


def test_the_greatest_sums_that_weights_can_make_are_held():
    """The format of sums is that of these weights: one bit less does not hold spectra at their ends."""
    (layer,) = linears(3, (16, 8)).layers
    product = column_share(layer, "share", 0, 4).product
    ends = np.sign(product.weights)[:, :, 0] * (product.spectrum.lo + 1)
    spectra = np.zeros((2, 4, 4), np.int64)
    spectra[:, :, 0] = ends
    first = np.abs(np.diagonal(product.accumulate(spectra)[:, :, 0])).max()
    assert first == np.abs(product.weights[:, :, 0]).sum(1).max() * product.spectrum.hi <= product.output.hi


def test_what_columns_take_comes_from_where_it_is_made():
    """Rows and then columns over the same chips exchange sums alone; a layer of one chip sends each share its part."""
    network = linears(2, (8, 16, 8, 8))
    rows, columns = Place((0, 1), (1, 3)), Place((0, 1), (1, 3), columns=True)
    made = cut(network, {"l0": rows, "l1": columns, "l2": Place((1,))}, 2)
    assert {(each.name, each.start, each.to) for each in made.wires} == {("l1__1", 1, 0), ("l1", 0, 1)}
    made = cut(network, {"l0": Place((2,)), "l1": columns, "l2": Place((0,))}, 3)
    assert {(each.name, each.to, each.flow.size) for each in made.wires} == {
        ("l1__0_in0", 0, 4), ("l1__1_in0", 1, 12), ("l1__1", 0, 8)}


@pytest.mark.parametrize("seed", range(6))
def test_parts_of_random_networks_give_what_the_whole_gives(seed):
    """Layers whole, by rows and by columns, over three chips in any order, played in integers."""
    rng = np.random.default_rng(seed)
    sizes = [int(each) for each in rng.integers(3, 12, 5) * 4 - rng.integers(0, 2, 5) * [2, 0, 0, 0, 1]]
    network, places = linears(seed, sizes), {}
    for node in network.nodes:
        chips = tuple(int(each) for each in rng.permutation(3)[:rng.integers(1, 4)])
        blocks, columns = even_columns(node.layer, rng.random(len(chips)) + 0.2), bool(rng.random() < 0.8)
        if not columns and node.layer.outputs % 4 == 0 and node.layer.outputs >= 4 * len(chips):
            blocks = (node.layer.outputs // 4 - len(chips) + 1, *(1,) * (len(chips) - 1))
        elif not blocks or not columns:
            chips = chips[:1]
        places[node.name] = Place(chips, blocks if len(chips) > 1 else (), columns=columns and len(chips) > 1)
    x = network.integers(rng.normal(0, 1, (20, network.flow.size)))
    known, nodes = {"input": x}, [node for part in cut(network, places, 3).parts if part for node in part.nodes]
    while nodes:  # What goes over wires has one name on both chips.
        node = next(each for each in nodes if set(each.sources) <= set(known))
        nodes.remove(node)
        known[node.name] = node.layer(node.layer.argument([known[source] for source in node.sources]))
    assert any(place.columns for place in places.values())
    assert (known[network.exit] == network.run_integers(x)).all()


PLACES = {
    "rows and columns": {"l0": Place((0, 1), (2, 2)), "l1": Place((0, 1), (2, 2), columns=True)},
    "columns of what one chip makes": {"l0": Place((0,)), "l1": Place((1, 0), (1, 3), columns=True)}}


@pytest.mark.parametrize("name", PLACES)
def test_columns_over_chips_are_those_of_one(name, tmp_path):
    network = linears(3, (22, 16, 13))
    plan = planned(network, cluster(60, 60), PLACES[name])
    folder = generate_chips(plan).write(tmp_path / "chips")
    vectors = network.vectors(np.random.default_rng(0).normal(0, 1, (60, 22)))
    found = verify(folder / SYSTEM, vectors)
    assert found.mismatches == 0 and found.words_compared > 60 * 13
    assert found.cycles_per_step == pytest.approx(plan.timing.period, rel=0.01)
    assert found.latency_spaced == plan.timing.latency
    rough = roughened(folder / SYSTEM, tmp_path / "rough", drawn(design.read(folder / SYSTEM)["links"], 3))
    assert verify(rough, vectors, patience=20_000).mismatches == 0


def behind_a_cell():
    return next(shared(tagger(), cluster(120, 120), ROWS | {"out": replace(ROWS["lstm2"], columns=True)}))


def test_columns_behind_the_rows_of_a_cell_have_an_array_of_their_own():
    """The cell's shares wait for each other's state; those of the layer wait for nothing."""
    plan = behind_a_cell()
    assert {each.name for each in plan.cut.wires if each.direct} == {"lstm1", "out__1"}
    for part, plans in zip(plan.cut.parts, plan.plans, strict=True):
        own = {node.name: each for node, each in zip(part.nodes, plans, strict=True) if each.multipliers}
        assert [name for name, each in own.items() if each.sharing is None] == [
            name for name in own if name.startswith("out")]
        assert sum(each.multipliers for each in own.values()) <= 120


@pytest.mark.soak
def test_columns_behind_the_rows_of_a_cell_are_those_of_one(tmp_path):
    plan, network = behind_a_cell(), tagger()
    folder = generate_chips(plan).write(tmp_path / "chips")
    found = verify(folder / SYSTEM, network.vectors(data(network, 2, 40)))
    assert found.mismatches == 0 and found.words_compared > 2 * 40 * 8
    assert (found.cycles_per_step, found.latency_spaced) == (plan.timing.period, plan.timing.latency)


def test_what_is_not_divided_by_columns_is_said():
    lstm, narrow = pair().layers[1], linears(1, (4, 8)).layers[0]
    assert unsummed(lstm) == "no columns of a layer of the kind 'lstm' are divided" and even_columns(lstm, [1]) == ()
    assert unsummed(narrow) == "it has one block column"
    with pytest.raises(Refusal, match="The columns of layer 'l0' cannot be divided: it has one block column"):
        column_share(narrow, "share", 0, 1)
    network = linears(1, (16, 8))
    with pytest.raises(Refusal, match="must be of 4 block columns in all, one or more on each chip, not"):
        cut(network, {"l0": Place((0, 1), (2, 3), columns=True)}, 2)
    with pytest.raises(Refusal, match="The columns of layer 'lstm2' cannot be divided: no columns of a layer"):
        cut(pair(), {"lstm1": Place((0,)), "lstm2": Place((0, 1), (2, 2), columns=True)}, 2)
