"""Blocks between layers of several block sizes leave when the hardware's converter lets them."""
import pytest

from circulant.hw.plan.latency import reblocked
from circulant.hw.plan.shared.links import link


@pytest.mark.parametrize(("size", "k_in", "k_out"), [(12, 4, 4), (12, 4, 2), (10, 8, 4), (9, 2, 4), (12, 2, 8),
                                                      (3, 8, 4)])
def test_blocks_leave_when_they_are_foreseen(size, k_in, k_out):
    """Of two vectors that are offered at once, the first one leaves as `reblocked` says, and all blocks leave."""
    blocks, wanted = -(-size // k_in), -(-size // k_out)
    between, given, taken, cycle = link(size, k_in, k_out), [], [], 0
    while len(taken) < 2 * wanted:
        leaves, accepts = between.step(len(given) < 2 * blocks, True)
        given += [cycle] * leaves
        taken += [cycle] * accepts
        cycle += 1
        assert cycle < 100
    assert len(given) == 2 * blocks
    assert taken[:wanted] == reblocked(given[:blocks] if k_in < k_out else list(range(blocks)), size, k_in, k_out)


def test_nothing_moves_while_nobody_takes():
    for between in (link(8, 4, 4), link(8, 4, 2)):
        assert between.step(True, False) == (False, False)
    gather = link(8, 2, 4)
    assert [gather.step(True, False) for _ in range(4)] == [*[(True, False)] * 2, *[(False, False)] * 2]
    assert gather.step(True, True) == (True, True)
