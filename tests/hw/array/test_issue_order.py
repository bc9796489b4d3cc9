from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from circulant.hw.array.issue_order import Item, RowPlaces, arrange, colour


@st.composite
def works(draw):
    """Passes with items in the order of their needs, and which of them end."""
    passes = draw(st.lists(st.lists(st.integers(0, 6), max_size=6), min_size=1, max_size=6))
    work = [[Item(need, group) for group, need in enumerate(sorted(needs))] for needs in passes]
    return work, draw(st.lists(st.booleans(), min_size=len(work), max_size=len(work)))


def places(issues, n):
    return [place for place, (number, _) in enumerate(issues) if number == n]


@given(works(), st.integers(1, 40))
def test_every_item_is_issued_once_in_its_pass_and_in_the_order_of_its_needs(work_ends, spacing):
    work, ends = work_ends
    issues = arrange(work, ends, spacing)
    assert len(issues) == sum(map(len, work))
    assert [[item for number, item in issues if number == n] for n in range(len(work))] == work


@given(works(), st.integers(1, 40))
def test_passes_end_in_their_order_at_most_the_spacing_apart(work_ends, spacing):
    work, ends = work_ends
    issues = arrange(work, ends, spacing)
    final = [places(issues, n)[-1] for n, items in enumerate(work) if items and ends[n]]
    assert final == sorted(final)
    assert all(later - before <= spacing for before, later in pairwise(final))
    if final:
        assert final[-1] == len(issues) - 1, "the command ends with the last pass that ends"


@given(works())
def test_with_a_spacing_of_one_the_columns_lead(work_ends):
    """But for the last items of the passes, which end one behind the other, needs never fall."""
    work, _ = work_ends
    issues = arrange(work, [True] * len(work), 1)
    ending = sum(map(bool, work))
    assert [n for n, _ in issues[len(issues) - ending:]] == [n for n, items in enumerate(work) if items]
    needs = [item.need for _, item in issues[:len(issues) - ending]]
    assert needs == sorted(needs)


@given(works())
def test_with_a_large_spacing_the_rows_lead(work_ends):
    work, _ = work_ends
    issues = arrange(work, [True] * len(work), 1000)
    assert [n for n, _ in issues] == [n for n, items in enumerate(work) for _ in items]


@given(works(), st.integers(1, 40))
def test_what_does_not_end_here_leads_by_columns(work_ends, spacing):
    work, _ = work_ends
    needs = [item.need for _, item in arrange(work, [False] * len(work), spacing)]
    assert needs == sorted(needs)


def test_an_order_in_between():
    """Two passes that end two apart: at first they wait for each column together, then one ends before the other."""
    columns = [Item(n + 1, n) for n in range(4)]
    assert [(n, item.group) for n, item in arrange([columns] * 2, [True] * 2, 2)] == [
        (0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3)]


@given(st.lists(st.integers(0, 8), max_size=30))
def test_no_two_share_a_slot_and_as_few_are_used_as_meet(numbers):
    slots = colour(numbers)
    assert slots.keys() == set(numbers)
    spans = {n: range(numbers.index(n), len(numbers) - numbers[::-1].index(n)) for n in slots}
    meeting = [[n for n, span in spans.items() if place in span] for place in range(len(numbers))]
    for at_once in meeting:
        assert len({slots[n] for n in at_once}) == len(at_once)
    greatest = max(map(len, meeting), default=0)
    assert set(slots.values()) == set(range(greatest))


@given(st.integers(1, 40), st.integers(1, 8), st.integers(1, 9))
def test_rows_have_places_of_their_own_and_each_pass_begins_with_the_first_bank(blocks, banks, passed):
    places = RowPlaces(blocks, banks, passed)
    found = [places.place(block) for block in range(blocks)]
    assert len(set(found)) == blocks
    assert all(bank < banks and address < places.depth for bank, address in found)
    assert {found[block][0] for block in range(0, blocks, passed)} == {0}
    if places.even:
        assert found == [(block % banks, block // banks) for block in range(blocks)]
