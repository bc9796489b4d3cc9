import pytest

from circulant.hw.chips.cluster import Chip, Cluster, Link
from circulant.sim.refusal import Refusal
from tests.hw.chips.networks import cluster


@pytest.mark.parametrize(("topology", "way"), [
    ("all", [(0, 3)]), ("line", [(0, 1), (1, 2), (2, 3)]), ("ring", [(0, 3)])])
def test_words_go_the_shortest_way(topology, way):
    assert list(cluster(9, 9, 9, 9, topology=topology).way(0, 3)) == way


@pytest.mark.parametrize(("make", "said"), [
    (lambda: Link(0), "A link's bits must be from 1 to 1,024, not 0"),
    (lambda: Link(8, -1), "A link's latency must be from 0 to 4,096, not -1"),
    (lambda: Chip("a", 0), "A chip must have at least one multiplier, but 'a' has 0"),
    (lambda: Cluster((), Link(8)), "must have at least one chip"),
    (lambda: cluster(9, 9, topology="star"), "A topology must be one of all, line, ring, not 'star'"),
    (lambda: cluster(9, 9, 9, topology="pairs", pairs=((0, 1),)), "there is none from 'chip0' to 'chip2'"),
    (lambda: cluster(9, 9, topology="pairs", pairs=((0, 5),)), "must join two of the chips 0 to 1, not 0 and 5")])
def test_what_cannot_be_is_refused(make, said):
    with pytest.raises(Refusal, match=said):
        make()


def test_a_block_takes_whole_words_and_its_frame():
    assert Link(64).words(128) == 2 and Link(64, overhead=3).words(129) == 6
