"""Tiny designs, and a neighbour on each side of them: beats in, and all ports in each cycle out."""
from functools import cache

import numpy as np

from circulant.hw.planner import plan
from circulant.hw.top import Top
from circulant.sim.kinds.flatten import FloatFlatten
from circulant.sim.real import float_model
from circulant.sim.shape.window import Window
from tests.hw.simulate import RESET, run
from tests.random_networks import Random

BITS = {"activation_bits": 9, "weight_bits": 7, "twiddle_bits": 8, "segments": 16}
CONTAINER = 16
"""Bits of a container around 9 of a value."""


def layers(name, r):
    """Layers, inputs, whether samples are sequences, the shape of images, and options of the hardware."""
    if name == "images":
        return [r.conv("conv", 1, 2, k=1, grid=(3, 3), window=Window((2, 2))),
                FloatFlatten("flat", 2, (2, 2), "pixels"),
                r.linear("out", 8, 3, 2)], 1, False, (1, 3, 3), {}
    if name == "both ways":
        return [float_model.Bidirectional("pair", *(
            r.gru(f"pair.{way}", 3, 2, 2, "sequence") for way in ("forward", "backward")
        ))], 3, True, (), {"max_steps": 3}
    if name in ("sequences", "steps", "interleaved"):
        gru = r.gru("gru", 3, 4, 2, "last" if name == "sequences" else "sequence")
        return [gru, r.linear("out", 4, 3, 2)], 3, True, (), {"streams": 2} if name == "interleaved" else {}
    return [r.linear("out", 5, 3, 2)], 5, False, (), {"reloadable": True} if name == "reloadable" else {}


@cache
def made(name):
    """A network, its plans and its top, compiled once for all tests."""
    random = Random(0)
    chain, inputs, sequence, shape, options = layers(name, random)
    network = random.network(chain, inputs, sequence=sequence, shape=shape, **BITS)
    plans = plan(network, 40, streams=options.pop("streams", 1))
    return network, plans, Top(network, plans, **options)


def beats(top, vectors, ends):
    """(tdata, tlast) of vectors, of which those with ``ends`` are the last of their sequence."""
    k, mask, found = top.input_block, (1 << CONTAINER) - 1, []
    for vector, last in zip(vectors, ends, strict=True):
        padded = [*map(int, vector), *[0] * (-len(vector) % k)]
        for n in range(0, len(padded), k):
            word = sum((value & mask) << CONTAINER * j for j, value in enumerate(padded[n:n + k]))
            found.append((word, int(last and n + k == len(padded))))
    return found


def play(top, sent, cycles, *, valid=lambda cycle, beat: True, ready=lambda cycle: True, reset=(), anew=False):
    """All ports in each cycle, from power-up on, while ``sent`` is offered; a beat is gone when it saw tready.

    Parameters:
        valid: whether a beat, by its number, is offered in a cycle.
        reset: cycles of reset; with ``anew`` the first beat is offered again behind each.
    """
    shown = []

    def agent():
        at = 0
        for cycle in range(cycles):
            offered = at < len(sent) and bool(valid(cycle, at))
            data, last = sent[at] if offered else (0, 0)
            ports = yield {"s_axis_tvalid": int(offered), "s_axis_tdata": data, "s_axis_tlast": last,
                           "m_axis_tready": int(ready(cycle)), RESET: int(cycle in reset)}
            shown.append({**ports, "rst": int(cycle in reset)})
            at = 0 if anew and cycle in reset else at + (offered and ports["s_axis_tready"])

    run(top, agent())
    return shown


def taken(shown, port="m_axis"):
    """(cycle, tdata, tlast) of the beats that went through a port."""
    return [(cycle, ports[f"{port}_tdata"], ports[f"{port}_tlast"]) for cycle, ports in enumerate(shown)
            if ports[f"{port}_tvalid"] and ports[f"{port}_tready"]]


def vectors_of(network, top, shown):
    """Output vectors, and whether tlast came with the last beat of each; it must be clear on the others."""
    k, each = top.output_block, -(-network.end.size // top.output_block)
    words, found = taken(shown), []
    assert len(words) % each == 0
    for at in range(0, len(words), each):
        values = [word >> CONTAINER * j & (1 << CONTAINER) - 1 for _, word, _ in words[at:at + each] for j in range(k)]
        values = [value - (value >> CONTAINER - 1 << CONTAINER) for value in values]
        assert not any(values[network.end.size:]), "what lies behind a vector must be zero"
        assert not any(last for _, _, last in words[at:at + each - 1])
        found.append((values[:network.end.size], words[at + each - 1][2]))
    return found


def sequences(network, lengths, seed=1):
    """Integers of the input format."""
    rng, form = np.random.default_rng(seed), network.input_format
    return [rng.integers(form.lo, form.hi + 1, (length, network.flow.size)) for length in lengths]


def marked(network, top, xs):
    """The beats of sequences or images, one behind the other; of vectors each is marked."""
    alone = not network.sequence and network.flow.grid is None
    return [beat for x in xs for beat in beats(top, x, [alone or t == len(x) - 1 for t in range(len(x))])]


def golden(network, xs):
    """Output vectors and marks for sequences or images; for vectors, each of which is marked."""
    found = []
    for x in xs:
        alone = not network.sequence and network.flow.grid is None
        rows = network.run_integers(x if alone else x[None]).reshape(-1, network.end.size).tolist()
        found += [(row, int(alone or n == len(rows) - 1)) for n, row in enumerate(rows)]
    return found
