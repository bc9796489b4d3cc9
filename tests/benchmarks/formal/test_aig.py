"""Graphs of AND gates: equal gates are one, constants disappear, and a file says the same as the graph."""
import itertools

import pytest

from benchmarks.formal.aig import FALSE, TRUE, Aig


def value(path, inputs):
    """The outputs of a binary AIGER file without latches."""
    head, rest = path.read_bytes().split(b"\n", 1)
    _, count, latches, outs, gates = map(int, head.split()[1:])
    assert (count, latches) == (len(inputs), 0)
    lines = rest.split(b"\n", outs)
    results, body = [int(line) for line in lines[:outs]], list(lines[outs])
    known = {0: 0, **{n + 1: bit for n, bit in enumerate(inputs)}}

    def literal(number):
        return known[number >> 1] ^ number & 1

    def delta():
        total, shift = 0, 0
        while True:
            byte = body.pop(0)
            total |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return total

    for n in range(count + 1, count + gates + 1):
        high = 2 * n - delta()
        known[n] = literal(high) & literal(high - delta())
    return [literal(number) for number in results]


def test_equal_gates_are_one_and_constants_disappear():
    aig = Aig()
    a, b = aig.input(), aig.input()
    assert aig.both(a, b) == aig.both(b, a)
    assert len(aig) == 1
    assert [aig.both(a, FALSE), aig.both(a, TRUE), aig.both(a, a), aig.both(a, a ^ 1)] == [FALSE, a, a, FALSE]
    assert [aig.mux(TRUE, a, b), aig.mux(b, a, a), aig.same(a, a)] == [a, a, TRUE]
    assert [aig.all([]), aig.any([])] == [TRUE, FALSE]


@pytest.mark.parametrize("bits", list(itertools.product((0, 1), repeat=3)))
def test_a_file_says_what_the_graph_says(bits, tmp_path):
    aig = Aig()
    a, b, c = (aig.input() for _ in range(3))
    aig.write(tmp_path / "x.aig", [aig.mux(a, b, c), aig.same(a, b), aig.any([a, b, c])])
    x, y, z = bits
    assert value(tmp_path / "x.aig", bits) == [y if x else z, x == y, x | y | z]
