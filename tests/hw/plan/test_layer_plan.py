"""What a layer can get, and which of it is taken."""
import re
from dataclasses import replace

import numpy as np
import pytest

from circulant.hw.array.lanes import rows_for
from circulant.hw.array.layer_programs import matrices
from circulant.hw.array.program import ArrayShape
from circulant.hw.emit.target import PORT_BITS
from circulant.hw.kinds.linear import vector_cycles
from circulant.hw.plan.layer_plan import LayerPlan, PairPlan, candidates, element_multiplications, exact
from circulant.hw.plan.shared.candidates import candidates as shared_candidates
from circulant.hw.plan.shared.groups import Group
from circulant.hw.stream.pipeline import LEVELS
from circulant.sim.arith.circulant import multiplications
from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.linear import Linear
from circulant.sim.kinds.scale import Scale
from circulant.sim.refusal import Refusal
from tests.hw.golden import product, recurrent

LINEAR = Linear("linear", 12, 8, product(2, 3, 4))
GRU = recurrent("after", k=4, inputs=8, hidden=12)


def test_candidates_go_from_one_product_a_cycle_to_all_blocks_at_once():
    found = list(candidates(LINEAR, 1))
    assert min(each.multipliers for each in found) == 1
    assert max(each.lanes for each in found if each.shape.chains == 1) == 6
    assert all(each.cycles == vector_cycles(LINEAR, each.shape) for each in found)
    assert {each.elements for each in found} == {0}
    assert {each.elements for each in candidates(GRU, 1)} == {1, 2, 4}, "of the state, at most a block's in a cycle"


@pytest.mark.parametrize("layer", [LINEAR, GRU, recurrent("lstm", k=4, inputs=8, hidden=12, projection=8)])
@pytest.mark.parametrize("budget", [12, 30, 80])
def test_the_taken_one_is_within_the_budget_and_no_other_is_as_fast_with_less(layer, budget):
    found = list(candidates(layer, 1))
    best = exact(layer, found, budget)
    assert best.multipliers <= budget
    same = [each for each in found if each.multipliers < best.multipliers]
    assert all(exact(layer, [each], budget).cycles > best.cycles for each in same if each.cycles <= best.cycles)


def test_interleaved_streams_are_timed_over_several_turns():
    one, three = (exact(GRU, list(candidates(GRU, streams)), 40) for streams in (1, 3))
    assert (one.streams, three.streams) == (1, 3)
    assert three.cycles < one.cycles, "the way back to the state is shared"


def test_a_pair_waits_for_the_slower_direction():
    plan = LayerPlan(ArrayShape(1, 1, 1), 1, 10, 20)
    pair = PairPlan(plan, replace(plan, multipliers=14, cycles=30), blocks=25)
    assert (pair.multipliers, pair.cycles, pair.streams) == (24, 30, 1)
    assert replace(pair, blocks=40).cycles == 40, "blocks leave one after the other"


def test_what_one_element_of_the_state_takes():
    assert element_multiplications(LINEAR) == 0
    assert element_multiplications(GRU) == 5
    assert element_multiplications(recurrent("lstm", k=4, inputs=8, hidden=12, peephole=True)) == 11


def test_a_layer_without_an_array_is_refused():
    form = Format(8, 4)
    scale = Scale("norm", inputs=4, scale=np.ones(4, np.int64), shift=np.zeros(4, np.int64), factor=form,
                  input_format=form, output_format=form)
    with pytest.raises(Refusal, match=re.escape("must have a unit for each layer, but has none for 'norm', a layer of "
                                                "the kind 'scale'")):
        next(candidates(scale, 1))


@pytest.mark.parametrize("objective", ["throughput", "area"])
def test_no_row_has_more_bits_than_a_module_may_have(objective):
    """Lanes of a wide matrix are in several rows, where one of 45 columns in blocks of 64 would have 72,694 bits."""
    wide = Linear("wide", 64 * 90, 64 * 4, product(4, 90, 64))
    found = list(candidates(wide, 1)) if objective == "throughput" else list(
        shared_candidates(Group((wide,)), LEVELS))
    assert rows_for(matrices(wide), ArrayShape(1, 45, 1), 1).port_bits == 72_694 > PORT_BITS
    assert max(rows_for(matrices(wide), each.shape, 1).port_bits for each in found) <= PORT_BITS
    assert 30 in {each.shape.columns for each in found}
    widest = multiplications(64) * (24 + 1) + 64 * 18 + multiplications(64) * (24 + 18 + 2 + 16)
    assert widest < PORT_BITS / 4, "a single column of the widest formats"
