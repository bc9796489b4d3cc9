"""The stimuli of the circuit: an ordered list of runs, each a few sequences under one kind of disturbance."""
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

__all__ = ["Run", "exercised", "looped", "make"]

PLAYED, PLAYED_VECTORS = 8, 32
"""Sequences, and vectors of all of them, that are played back to back at the least, some of them again: the later ones
show their pace."""

AGAIN = 3
ISOLATED = 4
LOOPED, LOOPED_WHOLE = 32, 6
"""Samples of a closed loop at the least, the second half of which show its latency: steps of a sequence, each stream's,
and whole ones."""

STALLED, STALLED_LONG = 4, 2
"""Sequences of a stalled run, and of one of long sequences, whose many steps are stalled as often."""

LONG = 100
"""Vectors from which a sequence, or a group of interleaved ones, is long."""

RESETS = (0.07, 0.31, 0.5, 0.77, 0.98, 1.2)


PULSES = (1, 2, 4)
"""Cycles of the resets at random moments."""

MOMENTS, MOMENTS_LONG = 2, 1
"""Random moments for each of them under the harness; of long sequences."""

FILLED, FILLED_CYCLES = 64, 400_000
"""Sequences that fill a circuit at the most, and cycles of all of them."""

FULL, FULL_LEAST, FULL_MOST = 1.25, 64, 25_000
"""For how many times the cycles of a sequence a beat is not accepted by a circuit that is full, and cycles at the least
and at the most."""

MISPLACED = 4
"""Frames at the most that end too early, and as many behind them."""

SWEPT, SWEPT_LONG, SWEPT_CYCLES = 300, 12, 3
"""Moments of the sweep, of long sequences, and one of how many resets in it is longer than a cycle."""

STALLED_SWEPT, STALLED_MOMENTS, STALLED_CYCLES = 30, 1200, 400_000
"""Moments of a stalled sweep at the least and at the most, and cycles of all that it cuts off: a place where something
waits is found seldom."""


@dataclass(frozen=True)
class Run:
    """Sequences that are played one after the other; the circuit is not reset between runs.

    Between beats the input is idle and the output pauses for random times: none, short (up to 3 cycles) or long (up to
    the time of two vectors, on a few beats of each vector, and short on the others). A pause may also be "until valid":
    ready rises a short time after valid was seen.

    Parameters:
        sequences: which of the vectors, in this order.
        isolated: a sequence is sent when the outputs of the one before have come, and its last vector when all that
            was sent is done.
        interrupted: sequences that are played before, until reset cuts them off.
        reset_after: when that is, in times of a sequence; None: once an output beat is waiting, which is not taken.
        reset_cycles: of that reset.
        script: which of the scripts of the configuration port is played before, if any.
        ends: the last vector of a sequence is marked; otherwise what follows goes on with it.
        silent: no outputs come.
        moments: one for each sequence, which are the same one: it is cut off by a reset so many cycles after its start,
            which lasts so many cycles, and then comes whole. For `circulant.sim.cosim.simulate.drive` alone.
        seed: of random stalls on both sides, not 0; 0 for none. With ``moments`` only what is cut off is stalled. For
            `circulant.sim.cosim.simulate.drive` alone.
        closed: a sample is sent when the result of the one before is out, without a pause. For
            `circulant.sim.cosim.simulate.drive` alone.
        misplaced: zeros at the end of a frame are not sent, and every second sample over images goes on behind its end,
            see `circulant.sim.cosim.frames.misplaced`. For `circulant.sim.cosim.simulate.drive` alone.
        full: no output is taken until the input has not been for so many cycles, as every queue is full by then; and
            then some are, and so on; 0 takes all. For `circulant.sim.cosim.simulate.drive` alone.
    """

    name: str
    sequences: tuple[int, ...]
    idle: str = "none"
    pause: str = "none"
    isolated: bool = False
    interrupted: tuple[int, ...] = ()
    reset_after: float | None = None
    reset_cycles: int = 4
    script: int | None = None
    ends: bool = True
    silent: bool = False
    moments: tuple[tuple[int, int], ...] = ()
    seed: int = 0
    full: int = 0
    misplaced: bool = False
    closed: bool = False

    @property
    def driven(self) -> bool:
        """Whether `circulant.sim.cosim.simulate.drive` alone plays it."""
        return bool(self.moments or self.seed or self.full or self.misplaced or self.closed)


def make(count: int, stalls: bool, vectors: int = 1, longest: int = 0,
         total: int = PLAYED_VECTORS) -> tuple[Run, ...]:
    """The runs for ``count`` sequences of up to so many vectors: all back to back, as often as they take to be
    `PLAYED` of `PLAYED_VECTORS`; some once more, isolated, stalled, after a reset.

    The first is for `circulant.sim.cosim.simulate.drive`, the others are for the harness.

    Parameters:
        longest: the sequence with the most vectors, which is the first of the isolated ones.
        total: vectors of all sequences.
    """
    def some(start: int, length: int) -> tuple[int, ...]:
        return tuple((start + i) % count for i in range(min(length, count)))

    times = max(-(-PLAYED // count), -(-PLAYED_VECTORS // total))
    runs = [Run("back-to-back", tuple(range(count)) * times), Run("back-to-back again", some(0, AGAIN)),
            Run("isolated", some(longest, ISOLATED), isolated=True)]
    if stalls:
        kinds = [kind for kind in product(("none", "short", "long"), ("none", "short", "long", "until valid"))
                 if kind != ("none", "none")]
        each = STALLED if vectors < LONG else STALLED_LONG
        runs += [Run(f"stalled: idle {idle}, pause {pause}", some(i * each, each), idle, pause)
                 for i, (idle, pause) in enumerate(kinds)]
    runs += [Run(f"after reset at {after:.0%} of a sequence", some(i, 2), interrupted=some(i + 2, 2), reset_after=after)
             for i, after in enumerate(RESETS)]
    runs.append(Run("after reset of a waiting output", some(1, 2), interrupted=some(0, 2)))
    return tuple(runs)


def looped(vectors: Sequence[int], stepwise: bool, streams: int = 1) -> Run:
    """The closed loop of one of the sequences of so many vectors, as often as it takes: of samples that are steps the
    shortest of those with enough of them, else the longest.

    Parameters:
        stepwise: whether each vector is a sample, and not the whole sequence.
    """
    least = LOOPED * streams
    chosen = max(range(len(vectors)), key=lambda n: vectors[n])
    if stepwise and vectors[chosen] > least:
        chosen = min((n for n, count in enumerate(vectors) if count >= least), key=lambda n: vectors[n])
    return Run("closed loop", (chosen,) * (-(-least // vectors[chosen]) if stepwise else LOOPED_WHOLE), closed=True)


def exercised(first: int, count: int, vectors: int, cycles: int, *, short: int = 0, span: int = 0,
              misplaced: Sequence[int] = ()) -> tuple[Run, ...]:
    """The runs for ``count`` drawn sequences of so many vectors: after short resets at random moments; stalled; a short
    one after short resets at many moments, which find it stalled, or not; some against a sink that waits until the
    circuit is full; some whose tlast is misplaced, each with another one behind it; and all of them back to back, after
    a reset.

    The last ones, from that with a misplaced tlast or the first that many resets cut off, are for
    `circulant.sim.cosim.simulate.drive`, the others are for the harness.

    Parameters:
        first: place of the first one.
        cycles: of a sequence, about.
        short: which of them is short: the moments are then so close that hardly any cycle is left out.
        misplaced: those of which the end can be left out, if any; `MISPLACED` of them are.
        span: cycles from its start until all of it is out, about; 0 for one and a half times a sequence's.
    """
    def some(start: int, length: int) -> tuple[int, ...]:
        return tuple(first + (start + i) % count for i in range(min(length, count)))

    draw, runs = random.Random(count), []
    for n in range(len(PULSES) * (MOMENTS if vectors < LONG else MOMENTS_LONG)):
        after, pulse = draw.uniform(0, 2), PULSES[n % len(PULSES)]
        name = f"drawn, after reset of {pulse} cycles at {after:.1%} of a sequence"
        runs.append(Run(name, some(n, 1), interrupted=some(n + 1, 2), reset_after=after, reset_cycles=pulse))
    each = STALLED if vectors < LONG else STALLED_LONG
    runs += [Run(f"drawn, stalled: idle {idle}, pause {pause}", some(i * each, each), idle, pause)
             for i, (idle, pause) in enumerate((("none", "short"), ("short", "none"), ("short", "until valid")))]
    swept, span = SWEPT if vectors < LONG else SWEPT_LONG, span or round(1.5 * cycles)
    also = min(STALLED_MOMENTS, max(STALLED_SWEPT, STALLED_CYCLES // span))
    moments, others = (tuple((round((n + draw.random()) * span / times),
                              1 if n % SWEPT_CYCLES else draw.choice(PULSES)) for n in range(times))
                       for times in (swept, also))
    filled = max(1, min(FILLED, FILLED_CYCLES // cycles))
    places = tuple(first + place for n in misplaced[:MISPLACED] for place in (n, (n + 1) % count))
    return (*runs, *([Run("drawn, misplaced tlast", places, misplaced=True)] if places else []),
            Run("drawn, stalled until short resets", some(short, 1) * also, moments=others, seed=1,
                misplaced=short in misplaced),
            Run("drawn, after short resets", some(short, 1) * swept, moments=moments, misplaced=short in misplaced),
            Run("drawn, held back until the circuit is full", tuple(first + n % count for n in range(filled)),
                full=min(max(round(FULL * cycles), FULL_LEAST), FULL_MOST)),
            Run("drawn, back-to-back", some(0, count)))
