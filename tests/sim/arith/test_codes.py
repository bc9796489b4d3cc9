from itertools import combinations

import numpy as np
import pytest

from circulant.sim.arith.codes import Code, check_protection
from tests.refused import refused

WIDTHS = 1, 2, 7, 8, 16, 33, 57, 64


def flips(code, word, sets):
    """The word with its check bits, once for each set of bits that are flipped."""
    bits = np.array([code.encode(word) >> bit & 1 for bit in range(code.bits)], bool)
    found = np.repeat(bits[None], len(sets), 0)
    for n, each in enumerate(sets):
        found[n, list(each)] ^= True
    return bits[:code.width], found


@pytest.mark.parametrize("width", WIDTHS)
def test_every_flip_of_a_word_is_put_right_and_every_two_are_seen(width):
    code = Code(width, "secded")
    ones = [(bit,) for bit in range(code.bits)]
    twos = list(combinations(range(code.bits), 2))
    for word in (0, (1 << width) - 1, 0x5DEECE66D5DEECE6 & (1 << width) - 1):
        true, words = flips(code, word, [(), *ones, *twos])
        found = code.decode(words)
        assert (found.data[:1 + len(ones)] == true).all()
        assert found.corrected.tolist() == [False] + [True] * len(ones) + [False] * len(twos)
        assert found.uncorrected.tolist() == [False] * (1 + len(ones)) + [True] * len(twos)
        assert (found.data[1 + len(ones):] == words[1 + len(ones):, :width]).all(), "what stays is as it was read"


def test_the_code_is_as_short_as_that_of_hsiao_and_its_rows_are_of_equal_weight():
    assert [Code(width, "secded").bits - width for width in (4, 8, 16, 32, 64)] == [4, 5, 6, 7, 8]
    assert {len(row) for row in Code(64, "secded").rows} == {27}


def test_wide_words_are_guarded_in_parts():
    code = Code(130, "secded")
    assert [len(data) for data, *_ in code.parts] == [43, 43, 44]
    true, words = flips(code, 1 << 129 | 5, [(0, 50, 129), (0, 1)])
    found = code.decode(words)
    assert (found.data[0] == true).all() and found.corrected.tolist() == [True, False]
    assert found.uncorrected.tolist() == [False, True]


@pytest.mark.parametrize("width", WIDTHS)
def test_parity_sees_every_flip(width):
    code = Code(width, "parity")
    assert code.bits == width + 1
    _, words = flips(code, 3 & (1 << width) - 1, [(), *((bit,) for bit in range(code.bits))])
    found = code.decode(words)
    assert found.uncorrected.tolist() == [False] + [True] * code.bits and not found.corrected.any()
    assert (found.data == words[:, :width]).all()


def test_protections():
    assert Code(9, "none").bits == 9 and Code(9, "none").encode(300) == 300
    assert refused(check_protection, "secde") == (
        "A protection must be one of none, parity, secded, scrub, not 'secde'; did you mean 'secded'?")
