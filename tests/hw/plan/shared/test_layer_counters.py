"""Layers whose recurrent vectors follow their inputs within a group of columns equal golden, and take the predicted
cycles."""
from dataclasses import replace

import numpy as np
import pytest

from circulant.hw.array.layer_programs import adjoins
from circulant.hw.array.program import ArrayShape
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real import float_model
from tests.hw.plan.shared.test_cost import assert_as_predicted, layer, plans_of, play

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
        network = quantize(float_model.Model("stack", sizes[0], True, layers), rng.normal(0, 1, (8, 6, sizes[0])))
        if adjoins(network.layers[0], shape):
            break
    spacings = tuple((int(rng.choice([shape.slots, 1])), int(rng.choice([1, 3, 1 << 30])), shape.slots) for _ in kinds)
    plans = plans_of(network.layers, shape, int(rng.choice([1, 2])), spacings, in_turn=seed % 2 == 1)
    own = replace(plans[0].sharing, adjacent=True)
    return network, [replace(plan, sharing=own) for plan in plans]


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(40) if seed != 1)])
def test_adjacent_vectors_give_what_golden_gives_in_the_predicted_cycles(seed):
    network, plans = adjacent(seed)
    top, x = assert_as_predicted(network, plans, seed)
    for steps, stall, silence in ((1, 0.0, 0), (2, 0.0, 200), (3, 0.5, 0)):  # Sequences that end.
        found, _, _ = play(network, top, x[:6], stall=stall, silence=silence, ends=steps)
        assert (found == network.run_integers(x[:6].reshape(6 // steps, steps, -1)).reshape(6, -1)).all()
