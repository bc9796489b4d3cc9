"""Layers whose recurrent vectors follow their inputs within a group of columns equal golden, and take the predicted
cycles."""
from dataclasses import replace

import numpy as np
import pytest

from circulant.hw.array.layer_programs import layer_program, matrices
from circulant.hw.array.plans import with_ports
from circulant.hw.array.program import AHEAD, ArrayShape
from circulant.hw.array.schedules.adjacent import Adjacent
from circulant.hw.array.schedules.split_rows import SplitShape
from circulant.hw.plan.shared.cost import steady_step
from circulant.hw.top import Top
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real import float_model
from tests.hw.plan.shared.drawn_stacks import assert_as_predicted, layer, plans_of, play
from tests.hw.session import Host

KINDS = "lstm", "projected", "after", "before", "rnn"


def adjacent(seed):
    """A quantized stack in which at least the first layer has a group of both vectors, and its plans."""
    rng = np.random.default_rng((13, seed))
    k, kinds = (4, 2)[seed % 2], [KINDS[seed % 5], *rng.choice((*KINDS, "linear"), rng.integers(0, 3))]
    while True:
        chains = int(rng.choice([1, 2] if "before" in kinds or "linear" in kinds or "after" in kinds else [1, 2, 4]))
        shape = ArrayShape(chains * int(rng.integers(1, 3)), int(rng.integers(2, 5)), chains,
                           int(rng.integers(2, 4)) if rng.random() < 0.3 else 1, int(rng.choice([4, 6, 9])))
        sizes = rng.integers(2 * k, 7 * k, len(kinds) + 1).tolist()
        layers = tuple(layer(rng, n, kind, k=k, inputs=sizes[n], outputs=sizes[n + 1]) for n, kind in enumerate(kinds))
        network = quantize(float_model.Model.chain("stack", sizes[0], True, layers), rng.normal(0, 1, (8, 6, sizes[0])))
        if Adjacent.serves(matrices(network.stages[0]), shape):
            break
    spacings = tuple((int(rng.choice([shape.slots, 1])), int(rng.choice([1, 3, 1 << 30])), shape.slots) for _ in kinds)
    return network, plans_of(network.stages, shape, int(rng.choice([1, 2])), spacings, in_turn=seed % 2 == 1)


def assert_adjacent(network, plans, seed):
    """A design of adjacent vectors equals golden and takes the predicted cycles, also where sequences end."""
    own = replace(plans[0].sharing, schedule=Adjacent)
    top, x = assert_as_predicted(network, [replace(plan, sharing=own) for plan in plans], seed)
    for steps, stall, silence in ((1, 0.0, 0), (2, 0.0, 200), (3, 0.5, 0)):  # Sequences that end.
        found, _, _ = play(network, top, x[:6], stall=stall, silence=silence, ends=steps)
        assert (found == network.run_integers(x[:6].reshape(6 // steps, steps, -1)).reshape(6, -1)).all()


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(40) if seed != 1)])
def test_adjacent_vectors_give_what_golden_gives_in_the_predicted_cycles(seed):
    assert_adjacent(*adjacent(seed), seed)


def test_adjacent_vectors_have_no_events_of_a_step():
    _, plans = adjacent(1)
    own = plans[0].sharing
    (program, *_) = replace(own, schedule=Adjacent).programs
    with pytest.raises(ValueError, match=r"^Events of a step must be of commands that issue as much first as behind, "
                                         r"not \[\d+, \d+, \d+\] and \[\d+, \d+, \d+\]$"):
        steady_step(replace(own, layers=own.layers[:1], spacings=own.spacings[:1], own=program), plans[0].elements)


ONE_COMMAND = {"lstm": (2, 5), "projected": (3, 5), "after": (1, 6), "before": (2, 5), "rnn": (1, 7)}
"""Kinds of layers whose inputs end within the first group of columns; blocks of input and output."""


@pytest.mark.parametrize("kind", ["projected", *(pytest.param(kind, marks=pytest.mark.soak)
                                                 for kind in ONE_COMMAND if kind != "projected")])
def test_a_step_without_a_group_of_the_input_alone_is_one_command(kind):
    """Its input has come before it starts; where only its state has, it has two."""
    rng, (x, h) = np.random.default_rng(5), ONE_COMMAND[kind]
    made = layer(rng, 0, kind, k=2, inputs=2 * x, outputs=2 * h)
    network = quantize(float_model.Model.chain("one", 2 * x, True, (made,)), rng.normal(0, 1, (8, 6, 2 * x)))
    plans = plans_of(network.stages, shape := ArrayShape(4, 4, 2, levels=6), 2, ((2, 3, 2),))
    program = layer_program(network.stages[0], shape, (2, 3, 2), Adjacent)
    assert type(program) is Adjacent
    assert bool(program.commands[AHEAD]) == (kind in ("after", "before")), "a candidate's are"
    assert_adjacent(network, plans, 3)


SPLIT = [({"x": 3, "h": 7}, (8, 5, 4), 1, 4), ({"x": 6, "h": 9}, (8, 5, 8), 1, 6), ({"x": 2, "h": 4}, (4, 3, 4), 1, 9),
         ({"x": 3, "h": 7}, (12, 5, 4), 2, 6), ({"x": 2, "h": 7, "after": 6}, (8, 5, 4), 1, 6)]
"""Blocks, rows, columns and chains, fold, levels."""


EIGHT = {"weight_bits": 8, "activation_bits": 8}


def split(sizes, numbers, fold, levels, *, seed=0, **widths):
    """One or two quantized GRUs whose candidates' rows share lanes, and their plans."""
    k, blocks = (2, 4)[seed % 2], [sizes["x"], sizes["h"], *([sizes["after"]] if "after" in sizes else [])]
    rng, values = np.random.default_rng((17, seed)), [k * each for each in blocks]
    layers = tuple(layer(rng, n, "after", k=k, inputs=values[n], outputs=values[n + 1])
                   for n in range(len(values) - 1))
    network = quantize(float_model.Model.chain("split", values[0], True, layers), rng.normal(0, 1, (8, 6, values[0])),
                       **widths)
    shape = SplitShape(*numbers, fold, levels)
    spacing = shape.slots, int(rng.choice([1, shape.slots, 1 << 30])), shape.slots
    return network, plans_of(network.stages, shape, k // 2, (spacing,) * len(layers))


@pytest.mark.parametrize(("number", "seed"), [(0, 0), (1, 1), (4, 0), *(
    pytest.param(number, seed, marks=pytest.mark.soak) for number in range(len(SPLIT)) for seed in range(4))])
def test_rows_that_share_lanes_give_what_golden_gives_in_the_predicted_cycles(number, seed):
    network, plans = split(*SPLIT[number], seed=seed)
    assert_adjacent(network, plans, seed)


@pytest.mark.parametrize("how", ["reloadable", "pairs"])
def test_a_split_array_of_a_reloadable_design_and_with_two_products_in_a_block(how):
    network, plans = split(*SPLIT[0], **({} if how == "reloadable" else EIGHT))
    own = replace(plans[0].sharing, schedule=Adjacent)
    plans = [replace(plan, sharing=own) for plan in plans]
    plans = plans if how == "reloadable" else with_ports(plans, "27x18")
    top = Top(network, plans, reloadable=how == "reloadable")
    assert bool(top.parts.pairs) == (how == "pairs")
    form = network.input_format
    x = np.random.default_rng(1).integers(form.lo, form.hi + 1, (2, 4, network.flow.size))
    host = Host(network, top, stall=0.3)
    host.vectors(x.reshape(8, -1), 8, np.arange(8) % 4 == 3)
    (played,) = host.play()
    assert played.tolist() == network.run_integers(x).reshape(8, -1).tolist()
