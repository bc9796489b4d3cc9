"""The exact cost of a step, in Python: when each pass, block and result comes, from the latencies of the units.

The hardware has no choice of its own, so that a recurrence over the passes gives every cycle; `Timeline` keeps them for
the Gantt chart. Held to the simulated hardware by its tests.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from amaranth.utils import ceil_log2, exact_log2

from circulant.hw.activation import Activation
from circulant.hw.array.program import Program
from circulant.sim.lstm import Lstm

__all__ = ["Timeline", "step_timeline"]


@dataclass
class Timeline:
    """Cycles of a step in steady state, counted from the start of its gates.

    Parameters:
        passes: (command, matrix, first cycle, last cycle) of each pass.
        blocks: cycle in which each block is fetched by the pointwise unit.
        results: cycle in which each block of the output is there.
        period: cycles from step to step.
    """

    passes: list[tuple[int, int, int, int]] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    period: int = 0


def fft_latency(k: int) -> int:
    levels = exact_log2(k)
    return levels + max(0, levels - 2)


def array_latency(k: int, columns: int) -> int:
    return 3 + 2 + ceil_log2(columns) + 4 + fft_latency(k)


def cell_latency(layer: Lstm) -> int:
    a = Activation.latency
    peek = 0 if layer.peephole is None else 2
    return 2 * (peek + a) + 4


def step_timeline(
    layer: Lstm, program: Program, elements: int, needs: Sequence[Sequence[int]], steps: int = 5
) -> Timeline:
    """The timeline of one stream whose inputs are always there."""
    shape, k = program.shape, layer.gates.block_size
    rows_at, phases = array_latency(k, shape.columns), k // elements
    pointwise, back = 1 + phases - 1 + cell_latency(layer) + 1, fft_latency(k) + 1 + 1
    now, drained, fetched, y_fetched = 0, 0, -(10**9), -(10**9)
    have: list[list[int]] = [[0] * (layer.gates.parts[1].columns // k), []]
    starts: list[int] = []
    line = Timeline()
    for _ in range(steps):
        line = Timeline()
        have[1] = []
        results: list[int] = []
        for n, p in enumerate(program.passes):
            matrix = program.matrices[p.matrix]
            now = max(now, drained + shape.slots - (p.groups) + 1)
            first = None
            for group in range(p.groups):
                need = needs[p.command][group]
                if need:
                    now = max(now, have[p.command][need - 1])
                first = now if first is None else first
                now += 1
            assert first is not None
            if n == 0:
                starts.append(first)
            drained = now - 1
            line.passes.append((p.command, p.matrix, first - starts[-1], now - 1 - starts[-1]))
            kinds = len(matrix.kinds)
            for row in range(
                p.first_row + (-p.first_row - 1) % kinds, min(p.first_row + shape.rows, matrix.rows), kinds
            ):
                emitted = drained + rows_at + (row - p.first_row) // shape.chains + 1
                if p.command == 0:
                    fetched = max(emitted, fetched + phases)
                    line.blocks.append(fetched - starts[-1])
                    if program.commands > 1:
                        have[1].append(fetched + pointwise + back)
                    else:
                        results.append(fetched + pointwise)
                else:
                    y_fetched = max(emitted, y_fetched + 1)
                    results.append(y_fetched + 1)
        have[0] = [result + back for result in results]
        line.results = [result - starts[-1] for result in results]
    line.period = starts[-1] - starts[-2]
    return line
