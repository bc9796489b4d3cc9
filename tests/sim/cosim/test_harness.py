"""What the harness draws; how it plays is shown by the runs of `verify`."""
import random
from types import SimpleNamespace
from typing import Any

import pytest

from circulant.sim.cosim.harness import LONG_SPELLS, SHORT, Bench


def spells(kind: str, *, vectors: int = 10, beats: int = 10, cycles: int = 1000, patience: int = 100_000,
           count: int = 20_000) -> list[int]:
    bench: Any = Bench.__new__(Bench)
    bench._sequence_cycles, bench._job = cycles, SimpleNamespace(patience=patience)
    draw = bench._spells(kind, vectors, beats, random.Random(0))
    return [int(draw()) for _ in range(count)]


def test_none() -> None:
    assert set(spells("none")) == {0}


def test_short_ones_are_half_of_them() -> None:
    drawn = spells("short", beats=1000)
    assert set(drawn) == {0, 1, 2, SHORT}
    assert drawn.count(0) / len(drawn) == pytest.approx(0.5, abs=0.02)


def test_long_ones_last_up_to_two_vectors() -> None:
    drawn = spells("long")
    assert max(drawn) == 2 * 1000 // 10
    assert drawn.count(0) / len(drawn) == pytest.approx(0.5, abs=0.02)


def test_of_many_beats_few_are_long_and_the_others_short() -> None:
    """A vector of 80 beats that waits for the time of 40 vectors shows no more than one that waits for a few."""
    drawn = spells("long", beats=800)
    assert drawn.count(0) / len(drawn) == pytest.approx(0.5, abs=0.02)
    long = [length for length in drawn if length > SHORT]
    assert len(long) / len(drawn) * 80 == pytest.approx(LONG_SPELLS, rel=0.1)
    assert max(long) == 2 * 1000 // 10


@pytest.mark.parametrize(("patience", "longest"), [(2000, 500), (10**8, 25_000)])
def test_no_spell_tries_the_patience(patience: int, longest: int) -> None:
    assert max(spells("long", cycles=10**7, patience=patience)) == pytest.approx(longest, rel=0.01)
