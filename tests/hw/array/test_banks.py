# amaranth: UnusedElaboratable=no
import numpy as np
import pytest

from circulant.hw.array.bank_shape import BankShape
from circulant.hw.array.banks import Banks
from circulant.hw.array.issue import SPECTRA
from tests.hw.drawn_layers import PRE, STATE, product
from tests.hw.simulate import run

K, X, H, SECOND = 2, 3, 4, 5
"""Values of a block, and blocks of the input, of the recurrent and of the second vector."""


def made(columns, *, h=True, second=False, **form):
    rng = np.random.default_rng(3)
    x, state, other = (product(rng, 2, count, K, PRE) for count in (X, H, SECOND))
    return BankShape(columns, x, state if h else None, other if second else None, **form)


def vectors(*shape):
    return np.random.default_rng(4).integers(STATE.lo, STATE.hi + 1, (*shape, K))


def write(dut, x=(), own=(), *, offer=0):
    """Drives the blocks of whole inputs, and (block, second, drop) of the layer's own from a cycle on, one a cycle."""
    blocks = [(block, n == len(vector) - 1) for vector in x for n, block in enumerate(vector)]
    cycle, own = 0, list(own)
    while blocks or own:
        drive = {"i.valid": 0, "own.valid": 0}
        if blocks:
            drive |= {"i.valid": 1, "i.payload": {"data": blocks[0][0].tolist(), "last": int(blocks[0][1])}}
        if own and cycle >= offer:
            block, second, drop = own.pop(0)
            drive |= {"own.valid": 1, "own.data": block.tolist(), "own.second": second, "own.drop": drop}
        shown = yield drive
        if blocks and shown["i.ready"]:
            blocks.pop(0)
        cycle += 1
        assert cycle < 500, "Deadlock"
    for _ in range(30):
        shown = yield {"i.valid": 0, "own.valid": 0}
    return shown


def read(base, groups, *, zero=0):
    """The spectra of so many groups of columns from an address on."""
    found = []
    for n in range(groups + SPECTRA):
        shown = yield {"address": base + min(n, groups - 1), "group": min(n, groups - 1), "zero": zero}
        found.append(shown["spectra"])
    return [spectrum for group in found[SPECTRA:] for spectrum in group]


def spectra(product, blocks):
    return product.spectra(blocks.T).T.tolist()


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("columns", [1, 2, 4, 5, 8])
def test_columns_of_both_vectors_lie_group_after_group(columns, aligned):
    """The state follows the input, or begins with a group of its own; what lies behind a vector reads as zeros."""
    start = -(-X // columns) * columns if aligned else X
    shape, x, h = made(columns, start=start), vectors(X), vectors(H)
    dut, seen = Banks(shape), {}

    def agent():
        # The state of a step is written to the vector behind that of the step before.
        yield from write(dut, [vectors(X)[::-1], x], [(block, 0, 0) for block in h], offer=3)
        groups = -(-(shape.head + H) // columns)
        seen["both"] = yield from read(shape.bases[1], groups)
        seen["zero"] = yield from read(shape.bases[1], groups, zero=1)

    run(dut, agent())
    groups, nothing = -(-(shape.head + H) // columns), [[0] * K]
    wanted = spectra(shape.x, x) + nothing * (shape.head - X)
    rest = nothing * (groups * columns - shape.head - H)
    assert seen["both"] == wanted + spectra(shape.h, h) + rest
    assert seen["zero"] == wanted + nothing * H + rest, "a first step has no state"
    assert shape.head == start


@pytest.mark.parametrize("columns", [1, 3, 4])
def test_second_vectors_lie_behind_the_ring_in_turn(columns):
    shape, seen = made(columns, second=True), []
    dut, given = Banks(shape), vectors(2, SECOND)

    def agent():
        yield from write(dut, own=[(block, 1, 0) for vector in given for block in vector])
        for base in shape.second_bases:
            spectrum = yield from read(base, -(-SECOND // columns))
            seen.append(spectrum[:SECOND])

    run(dut, agent())
    assert seen == [spectra(shape.second, vector) for vector in given]


def test_blocks_count_from_when_they_come_until_their_vector_is_read():
    """Inputs as a whole, and block by block where a command waits for them; of the layer's own not those that are
    dropped."""
    shape = made(2, second=True, counts=3)
    dut, counts = Banks(shape), []

    def told(shown):
        counts.append((shown["inputs"], shown["have"]))

    def agent():
        own = [(block, 0, 0) for block in vectors(H)] + [(block, 1, 0) for block in vectors(SECOND)]
        own += [(block, 0, 1) for block in vectors(2)]
        told((yield from write(dut, vectors(2, X), own)))
        for done in ("done_input", "done_h", "done_second"):
            yield {done: 1}
            told((yield {done: 0}))

    run(dut, agent())
    assert counts == [(2, [H, SECOND, 2 * X]), (1, [H, SECOND, X]), (1, [0, SECOND, X]), (1, [0, 0, X])]


def test_inputs_wait_in_front_of_a_full_ring():
    """Without a state there is room for three of them, and for the next one when one has been read."""
    dut, offered = Banks(made(2, h=False)), []

    def agent():
        block = {"data": [0] * K, "last": 1}
        for cycle in range(40):
            shown = yield {"i.valid": 1, "i.payload": block, "done_input": int(cycle == 30)}
            offered.append((cycle, shown["i.ready"]))

    run(dut, agent())
    taken = [cycle for cycle, ready in offered if ready]
    assert len(taken) == 4 * X and len([cycle for cycle in taken if cycle <= 30]) == 3 * X
