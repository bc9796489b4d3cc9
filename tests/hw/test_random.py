"""Random recurrent layers on random arrays equal golden, whatever their sizes, widths, streams and stalls."""
from dataclasses import dataclass

import numpy as np
import pytest

from circulant.hw.array.layer_programs import ROWS, layer_program
from circulant.hw.array.program import ArrayShape, Program
from circulant.hw.kinds.recurrent import RecurrentLayer
from circulant.sim.arith.circulant import multiplications
from circulant.sim.kinds.gru import Gru
from circulant.sim.kinds.lstm import Lstm
from circulant.sim.passes.bitwidths import WEIGHT_SCALES
from circulant.sim.refusal import Refusal
from tests.hw.golden import interleaved, recurrent
from tests.hw.simulate import stream

COUNT, FAST = 30, 15
"""Drawn cases; the first ones have every block size with every kind of cell."""
ELEMENTS = 30
"""Multipliers of an array at the most; more only take longer to simulate."""


@dataclass(frozen=True, eq=False)
class Case:
    layer: Gru | Lstm
    program: Program
    elements: int
    streams: int
    stalls: tuple[float, float]


def quantized(rng, kind, **sizes):
    """The golden layer in random widths, some of which contradict each other, such as those of a multiplier."""
    for _ in range(20):
        widths = {"weight_bits": int(rng.integers(2, 19)), "activation_bits": int(rng.integers(4, 25)),
                  "spectrum_bits": int(rng.choice([0, rng.integers(4, 27)])),
                  "product_bits": int(rng.choice([0, rng.integers(4, 33)])),
                  "twiddle_bits": int(rng.integers(4, 21)), "segments": 1 << int(rng.integers(1, 7)),
                  "weight_scale": str(rng.choice(WEIGHT_SCALES))}
        try:
            return recurrent(kind, seed=int(rng.integers(1000)), **sizes, **widths)
        except Refusal:
            continue
    raise AssertionError("None of the widths fits")


def case(seed):
    """A layer and its hardware; sizes are no multiples of the block size but by chance."""
    rng = np.random.default_rng((7, seed))
    k = (1, 2, 4, 8, 16)[seed % 5]
    kind = ("lstm", "after", "before")[seed // 5 % 3]
    inputs, hidden = (int(rng.integers(1, 3 * k + 4 if k < 8 else 2 * k + 2)) for _ in range(2))
    projection = int(rng.integers(1, hidden + 1)) if kind == "lstm" and seed % 2 else 0
    layer = quantized(rng, kind, k=k, inputs=inputs, hidden=hidden, projection=projection,
                      peephole=bool(rng.integers(2)), returns=("last", "sequence")[rng.integers(2)],
                      multiplier={1: "mitchell", 4: "truncated:3"}.get(seed % 7, "exact"))
    most = max(1, ELEMENTS // multiplications(k))
    chains = int(rng.choice([n for n in (1, 2, 4, 8) if n <= most]))
    rows = chains * int(rng.integers(1, most // chains + 1))
    fold = int(rng.integers(2, multiplications(k) + 2)) if rng.random() < 0.3 else 1
    shape = ArrayShape(rows, int(rng.integers(1, most // rows + 1)), chains, fold)
    spacing = tuple(int(rng.choice([1, 2, 3, 5, rows // chains, ROWS])) for _ in range(3))
    elements = int(rng.choice([n for n in (1, 2, 4, 8, 16) if n <= k]))
    return Case(layer, layer_program(layer, shape, spacing), elements, int(rng.integers(1, 4)),
                ((0.0, 0.0), (0.4, 0.4), (0.0, 0.9), (0.9, 0.0))[rng.integers(4)])


@pytest.mark.parametrize("seed", [*range(FAST), *(pytest.param(seed, marks=pytest.mark.soak)
                                                 for seed in range(FAST, COUNT))])
def test_a_random_layer_equals_golden(seed):
    chosen = case(seed)
    given, wanted = interleaved(chosen.layer, chosen.streams, steps=max(2, 6 // chosen.streams), seed=seed)
    dut = RecurrentLayer(chosen.layer, program=chosen.program, elements=chosen.elements, streams=chosen.streams)
    assert stream(dut, given, stall_i=chosen.stalls[0], stall_o=chosen.stalls[1], seed=seed,
                  quiet=200 + 3 * chosen.program.cycles * chosen.program.shape.fold, count=len(wanted)) == wanted


def test_the_cases_differ():
    """What a case is made of comes up with all its values."""
    cases = [case(seed) for seed in range(FAST)]
    lstms = [c.layer for c in cases if isinstance(c.layer, Lstm)]
    assert {(layer.projection is None, layer.peephole is None) for layer in lstms} == {
        (a, b) for a in (False, True) for b in (False, True)}
    assert {c.layer.reset for c in cases if isinstance(c.layer, Gru)} == {"after", "before"}
    assert {c.streams for c in cases} == {1, 2, 3}
    assert {c.layer.returns for c in cases} == {"last", "sequence"}
    assert {c.program.shape.chains for c in cases} >= {1, 2, 4}
    assert len({c.program.shape.fold for c in cases}) > 3
    assert len({c.stalls for c in cases}) == 4
    assert any(c.layer.hidden % c.layer.gates.block_size for c in cases)
    shifted = [any(part.row_shifts for part in c.layer.products.values()) for c in cases]
    assert 3 <= sum(shifted) < len(cases)
