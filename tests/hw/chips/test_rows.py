import numpy as np
import pytest

from circulant.hw.chips.cut import Place
from circulant.hw.chips.folders import generate_chips
from circulant.hw.chips.plans import planned
from circulant.hw.chips.rows import block_rows, row_share, undivided
from circulant.sim.chips import SYSTEM
from circulant.sim.cosim import verify
from circulant.sim.refusal import Refusal
from tests.hw.chips.networks import cluster, data, pair
from tests.random_networks import Random


@pytest.mark.parametrize(("cell", "tensor"), [("lstm", "y"), ("gru", "h")])
def test_shares_of_a_cell_give_its_state_between_them(cell, tensor):
    network = pair(cell)
    trace = network.traced(network.integers(data(network)))
    x, y = trace[f"{cell}1.{tensor}"].integers, trace[f"{cell}2.{tensor}"].integers
    late = np.concatenate([np.zeros_like(y[:, :1]), y[:, :-1]], axis=1)
    for begin, end, first in ((0, 1, False), (1, 3, True), (3, 4, False)):
        share = row_share(network.layers[1], "share", begin, end, columns=[2, 0, 1, 3] if first else None)
        mine = np.s_[begin * 4:end * 4]
        others = np.delete(late, mine, axis=2)
        turned = x.reshape(*x.shape[:2], 4, 4)[:, :, [2, 0, 1, 3]].reshape(x.shape)
        given = np.concatenate([others, turned] if first else [x, others], axis=2)
        assert (share.run(given)[0] == y[..., mine]).all()


def test_shares_of_a_linear_layer_are_its_rows():
    r = Random(3)
    network = r.network((r.linear("head", 8, 12, 4, relu=True),), 8)
    x = network.integers(np.random.default_rng(0).normal(0, 1, (5, 8)))
    shares = [row_share(network.layers[0], "share", *each)(x) for each in ((0, 1), (1, 3))]
    assert (np.concatenate(shares, axis=1) == network.run_integers(x)).all()


def test_what_is_not_divided_is_said():
    r = Random(3)
    gru, ragged = (r.network((r.gru("gru", inputs, 8, 4, "sequence", reset=reset),), inputs, sequence=True).layers[0]
                   for inputs, reset in ((8, "before"), (6, "after")))
    projected = r.network((r.lstm("lstm", 8, 16, 4, "sequence", projection=8),), 8, sequence=True).layers[0]
    rnn = r.network((r.rnn("rnn", 8, 8, 4, "sequence"),), 8, sequence=True).layers[0]
    assert undivided(rnn) == "no rows of a layer of the kind 'rnn' are divided" and not block_rows(rnn)
    assert undivided(gru) == "its candidate needs what the reset gates of all cells leave of the state, within a step"
    assert undivided(ragged) == "its 6 inputs are not whole blocks of 4, beside which states stand"
    assert undivided(projected) == "its projection needs all cells of a step before the next one"
    assert "so that they cannot stand side by side" in undivided(pair().layers[0])
    with pytest.raises(Refusal, match="The rows of layer 'rnn' cannot be divided: no rows of a layer of the kind"):
        row_share(rnn, "share", 0, 1)


def test_rows_behind_rows_over_a_full_link_come_as_planned(tmp_path):
    """What a chip makes waits for what others make, a link's delay longer; results pass what lies behind them."""
    r = Random(3)
    network = r.network([r.linear("l0", 16, 96, 4, relu=True), r.linear("l1", 96, 16, 4)], 16)
    places = {"l0": Place((0, 1), (12, 12)), "l1": Place((0, 1), (2, 2))}
    plan = planned(network, cluster(80, 80, bits=32, latency=60), places)
    assert plan.timing.period == plan.timing.links[1, 0] > max(plan.timing.parts.values())
    folder = generate_chips(plan).write(tmp_path / "chips")
    found = verify(folder / SYSTEM, network.vectors(np.random.default_rng(0).normal(0, 1, (80, 16))), stalls=False)
    assert found.mismatches == 0 and found.words_compared > 80 * 16
    assert found.cycles_per_step == pytest.approx(plan.timing.period, abs=0.1), "of the last ones"
    assert found.latency_spaced == plan.timing.latency
