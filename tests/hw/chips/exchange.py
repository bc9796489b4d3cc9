"""Blocks of drawn numbers for the ends of a link, and what comes of them at the other end."""
import numpy as np

from circulant.hw.chips.words import Channel
from tests.hw.simulate import Transfers, run, sink, source

OUT = Channel(2, 9, 5), Channel(1, 5, 3)
BACK = (Channel(1, 12, 4),)


def words(channel, count, seed):
    rng = np.random.default_rng(seed)
    top = 1 << channel.width - 1
    return [{"data": [int(each) for each in rng.integers(-top, top, channel.k)], "last": int(rng.random() < 0.2)}
            for _ in range(count)]


def exchanged(dut, ways, count, stalls, *, quiet):
    """Blocks that were sent and that came, and the cycle in which the last one did.

    Parameters:
        ways: names of a stream into an end and out of the other one, for each channel of `OUT` and `BACK`.
    """
    sent = [words(channel, count, n) for n, channel in enumerate((*OUT, *BACK))]
    came, went = [Transfers() for _ in ways], [Transfers() for _ in ways]
    run(dut, *(source(way[0], each, passed, stall=stalls[0], seed=n)
               for n, (way, each, passed) in enumerate(zip(ways, sent, came, strict=True))),
        *(sink(way[1], passed, came, stall=stalls[1], seed=n, quiet=quiet)
          for n, (way, passed) in enumerate(zip(ways, went, strict=True))))
    return sent, [each.payloads for each in went], max((each.cycles[-1] for each in went if each.cycles), default=0)
