"""Stacks of layers that share an array, drawn by a seed, and the driver of their circuits."""
from itertools import groupby

import numpy as np

from circulant.hw.array.plans import LayerPlan, Sharing
from circulant.hw.array.program import ArrayShape
from circulant.hw.array.schedules.either_first import EitherFirst
from circulant.hw.array.schedules.input_first import InputFirst
from circulant.hw.plan.shared.cost import (
    shared_cost,
)
from circulant.hw.top import Top
from circulant.sim.kinds.gru import FloatGru
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.kinds.lstm import FloatLstm
from circulant.sim.kinds.rnn import FloatRnn
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real import float_model
from tests.hw.simulate import run

COUNT, FAST, PLAYED = 30, 3, 24


def first_columns(rng, rows, columns, k, *gates):
    return rng.normal(0, 0.7, (*gates, -(-rows // k), -(-columns // k), k)) / np.sqrt(columns) * 2


def layer(rng, number, kind, *, k, inputs, outputs):
    """A layer with random weights: "lstm", "projected", "after", "before", "rnn" or "linear"."""
    name, hidden = f"l{number}", outputs + (3 if kind == "projected" else 0)
    gates = {"lstm": 4, "projected": 4, "rnn": 1}.get(kind, 3)
    if kind == "linear":
        weight = first_columns(rng, outputs, inputs, k)
        return FloatLinear(name, inputs, outputs, weight, rng.normal(0, 1, outputs))
    shared = {"inputs": inputs, "hidden": hidden, "weight_ih": first_columns(rng, hidden, inputs, k, gates),
              "weight_hh": first_columns(rng, hidden, outputs, k, gates), "bias_ih": rng.normal(0, 1, (gates, hidden)),
              "bias_hh": rng.normal(0, 1, (gates, hidden)), "returns": "sequence"}
    if kind == "rnn":
        return FloatRnn(name, **shared)
    if gates == 3:
        return FloatGru(name, reset=kind, **shared)
    projection = first_columns(rng, outputs, hidden, k) if kind == "projected" else None
    peephole = rng.normal(0, 0.5, (3, hidden)) if rng.integers(2) else None
    return FloatLstm(name, outputs=outputs, projection=projection, peephole=peephole, **shared)


def plans_of(layers, shape, elements, spacings, in_turn=False, streams=1):
    """Plans of layers that share an array of a shape."""
    sharing = Sharing(layers, shape, spacings, in_turn, streams=streams,
                      schedule=EitherFirst if streams == 1 else InputFirst)
    return [LayerPlan(shape, 0 if each.kind == "linear" else elements, 0, 0, spacing, streams=streams, sharing=sharing)
            for each, spacing in zip(layers, spacings, strict=True)]


def stack(seed, streams=1):
    """A quantized stack, its plans, which share an array, and shares of stalls."""
    rng = np.random.default_rng((11, seed))
    k, abreast, uneven = (4, 2, 8)[seed % 3], seed % 5 == 2, seed % 4 == 0
    kinds = ("after", "linear", "rnn") if abreast else ("lstm", "after", "before", "projected", "linear")
    kinds = ("after", "before", "linear") if uneven and not abreast else kinds
    count = int(rng.integers(2, 4 if seed < FAST else 6))
    sizes = rng.integers(2, (5 if uneven or abreast else 2) * k + 3, count + 1).tolist()
    chosen = ["lstm" if seed % 2 and not abreast else "after", *rng.choice(kinds, count - 1)]
    layers = tuple(layer(rng, n, kind, k=k, inputs=sizes[n], outputs=sizes[n + 1]) for n, kind in enumerate(chosen))
    network = quantize(float_model.Model.chain("stack", sizes[0], True, layers), rng.normal(0, 1, (8, 6, sizes[0])))
    chains = int(rng.choice([1, 2])) if "linear" in chosen or "before" in chosen else int(rng.choice([1, 2, 4]))
    fold = int(rng.integers(2, 5)) if rng.random() < 0.3 else 1
    rows, columns, levels = chains * int(rng.integers(1, 3)), int(rng.integers(1, 4)), int(rng.choice([4, 6, 9]))
    if uneven:
        rows, chains = 6, 4  # Banks of rows that are not full.
    if abreast and streams == 1:
        (rows, chains), fold = ((9, 6) if seed % 2 else (3, 3)), 1  # All gates of a GRU are side by side.
    shape = ArrayShape(rows, columns, chains, fold, levels)
    spacings = tuple((shape.slots, int(rng.choice([1, 3, 1 << 30])), shape.slots) for _ in layers)
    plans = plans_of(network.stages, shape, int(rng.choice([1, 2])), spacings, in_turn=seed % 2 == 1,
                     streams=streams)
    return network, plans, float(rng.choice([0.0, 0.5]))


def steps_of(predicted, count):
    """The cycles of so many steps, and of those that are played at the least, which repeat."""
    _, turn = predicted.repeats
    found = list(predicted.steps)
    while len(found) < count:
        found.append(found[-turn])
    return found


def cost(network, plans):
    return shared_cost(list(dict.fromkeys(plan.sharing for plan in plans)), [plan.elements for plan in plans])


def play(network, top, x, *, stall=0.0, silence=0, ends=0, streams=1):
    """A sequence (T, inputs): outputs, the cycles in which its vectors have come, those in which results have left.

    Parameters:
        stall: share of cycles without an input, and without an output taken.
        silence: cycles before each vector, from the last result on.
        ends: steps after which a sequence ends; 0 where it is one; or a set of those that end one.
        streams: whose steps follow each other in turn.
    """
    rng = np.random.default_rng(5)
    (width, size, block), (out_width, outputs, out_block) = (
        (8 * -(-network.input_format.width // 8), network.flow.size, top.input_block),
        (8 * -(-network.output_format.width // 8), network.end.size, top.output_block))
    beats, wanted = -(-size // block), -(-outputs // out_block) * len(x)
    lasts = [n // streams + 1 in ends if isinstance(ends, set) else (n // streams + 1) % (ends or len(x)) == 0
             for n in range(len(x))]
    pending = [(sum((int(value) & (1 << width) - 1) << width * j for j, value in
                    enumerate(vector[b * block:(b + 1) * block])), int(last and b == beats - 1))
               for vector, last in zip(x, lasts, strict=True) for b in range(beats)]
    words, came, went = [], [], []

    def agent():
        cycle, last, valid = 0, 0, False
        while len(words) < wanted:
            whole = not len(came) % beats and silence
            waits = whole and (len(words) < len(came) // beats * (wanted // len(x)) or cycle - last <= silence)
            valid = valid or (len(came) < len(pending) and not waits and rng.random() >= stall)
            ready = rng.random() >= stall
            drive = {"s_axis_tvalid": int(valid), "m_axis_tready": int(ready)}
            if valid:
                drive |= {"s_axis_tdata": pending[len(came)][0], "s_axis_tlast": pending[len(came)][1]}
            shown = yield drive
            if valid and shown["s_axis_tready"]:
                came.append(cycle)
                valid = False
            if ready and shown["m_axis_tvalid"]:
                words.append(shown["m_axis_tdata"])
                went.append(cycle)
                last = cycle
            cycle += 1
            assert cycle < 100_000, "Deadlock"

    run(top, agent())
    each = [[(word >> out_width * j) % (1 << out_width) for j in range(out_block)] for word in words]
    found = np.array(each, dtype=np.int64).reshape(len(x), -1)[:, :outputs]
    found -= (found >> out_width - 1) << out_width
    return found, came[beats - 1::beats], went[wanted // len(x) - 1::wanted // len(x)]


def groups(seed):
    """A quantized stack of layers with several block sizes, and its plans: those in a row with one share an array."""
    rng = np.random.default_rng((12, seed))
    sizes = [(4, 4, 2), (2, 4, 4), (8, 1), (8, 2, 2, 4), (4, 1 << seed % 2, 8)][seed % 5]
    widths = rng.integers(3, 12, len(sizes) + 1).tolist()
    kinds = ["lstm", *rng.choice(("lstm", "after", "rnn", "linear"), len(sizes) - 1)]
    layers = tuple(layer(rng, n, kind, k=k, inputs=widths[n], outputs=widths[n + 1])
                   for n, (k, kind) in enumerate(zip(sizes, kinds, strict=True)))
    network = quantize(float_model.Model.chain("groups", widths[0], True, layers), rng.normal(0, 1, (8, 6, widths[0])))
    plans, at = [], 0
    for _, same in groupby(sizes):
        count, shape = len(list(same)), ArrayShape(int(rng.integers(1, 4)), int(rng.integers(1, 4)), 1)
        spacings = ((shape.slots, 3, shape.slots),) * count
        plans += plans_of(network.stages[at:at + count], shape, int(rng.choice([1, 2])), spacings,
                          in_turn=bool(rng.integers(2)))
        at += count
    return network, plans


def assert_as_predicted(network, plans, seed, *, reloadable=False):
    """A design equals golden, and its steps and single samples take the predicted cycles; returns it, and its input."""
    top, predicted, form = Top(network, plans, reloadable=reloadable), cost(network, plans), network.input_format
    steps = steps_of(predicted, PLAYED)
    x = np.random.default_rng(seed).integers(form.lo, form.hi + 1, (len(steps) + 1, network.flow.size))
    found, came, _ = play(network, top, x)
    assert (found == network.run_integers(x[None])[0]).all()
    assert np.diff(came).tolist() == steps
    found, came, went = play(network, top, x[:3], silence=700)
    assert [late - early for early, late in zip(came, went, strict=True)] == [predicted.latency] * 3
    assert (found == network.run_integers(x[None, :3])[0]).all()
    return top, x


def drawn_stack(seed):
    """A quantized stack of several layers, of one block size or of several, and what a plan of it may be asked for."""
    rng = np.random.default_rng((49, seed))
    count = int(rng.integers(2, 5))
    sizes = rng.choice((1, 2, 4, 8, 16), count) if seed % 3 == 0 else np.repeat(rng.choice((2, 4, 8, 16)), count)
    widths = rng.integers(3, 40, count + 1).tolist()
    kinds = ["lstm", *rng.choice(("lstm", "after", "before", "projected", "linear", "rnn"), count - 1)]
    layers = tuple(layer(rng, n, kind, k=int(k), inputs=widths[n], outputs=widths[n + 1])
                   for n, (k, kind) in enumerate(zip(sizes, kinds, strict=True)))
    network = quantize(float_model.Model.chain("stack", widths[0], True, layers), rng.normal(0, 1, (2, 4, widths[0])))
    return network, {"multipliers": int(rng.choice((250, 400, 600))), "levels": int(rng.integers(4, 10)),
                     "objective": str(rng.choice(("auto", "latency", "area"))),
                     "streams": int(rng.choice((1, 1, 1, 2, 3))), "reloadable": bool(rng.integers(2))}
