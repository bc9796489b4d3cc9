from functools import cache

import numpy as np
import pytest

from circulant.hw.arith.activation import activation_latency
from circulant.hw.components.cell import cells_of
from circulant.hw.kinds.gru import CandidateCell, GruCell, ResetCell
from circulant.hw.kinds.lstm import LstmCell
from circulant.hw.stream.pipeline import LEVELS
from circulant.sim.arith.circulant import pad
from tests.hw.golden import numbers, pre_step, recurrent
from tests.hw.simulate import trace

COUNT = 300
WIDTHS = [{"activation_bits": 7, "weight_bits": 5}, {"activation_bits": 12, "segments": 16},
          {"activation_bits": 16, "weight_bits": 18}, {"activation_bits": 24, "spectrum_bits": 12}]
KINDS = {"lstm": {}, "peephole": {"peephole": True}, "after": {}, "before": {}}


@cache
def layer(kind, n=1):
    made = recurrent("lstm" if kind == "peephole" else kind, k=1, inputs=1, hidden=1, **KINDS.get(kind, {}),
                     **WIDTHS[n])
    if kind == "peephole":  # Every element has peepholes of its own.
        object.__setattr__(made, "peephole", numbers(made.peephole_format, 3, COUNT, seed=9))
    return made


def operands(golden, cell, seed=0):
    """Pre-activations over the whole format in the first half, near zero in the second; states."""
    values = {row: numbers(golden.pre_format, COUNT, seed=seed + n) for n, row in enumerate(cell.rows)}
    for row in cell.rows:
        values[row][COUNT // 2:] >>= 3
    state = golden.cell if golden.kind == "lstm" else golden.output_format
    return values, numbers(state, COUNT, seed=seed + 17)


def stepped(cell, golden, columns, levels):
    """The outputs of a cell for a column of values of each operand, an element per cycle."""
    late = cell.latency(golden, levels)
    given = {name: values.tolist() for name, values in columns.items()}
    shown = trace(cell(golden, name="layer", levels=levels), given, extra=late)
    outputs = [*cell.outputs(golden), *(["next"] if cell.own else [])]
    return {name: shown[name][late:] for name in outputs}


def expected(golden, pre, state):
    return {name: values.tolist() for name, values in pre_step(golden, pre, state).items()}


def outcome(kind, golden, values, state, levels=LEVELS):
    """What the cells of a layer give for pre-activations and a state, and what `step` gives."""
    wanted = expected(golden, values, state)
    if kind.startswith("before"):
        first = stepped(ResetCell, golden, {row: values[row] for row in ResetCell.rows} | {"state": state}, levels)
        gate = np.array(first["gate"])
        second = stepped(CandidateCell, golden, {"n": values["n"], "state": state, "gate": gate}, levels)
        return {"second": first["y"], "gate": first["gate"]} | second, wanted
    peepholes = {f"p{gate}": golden.peephole[n] for n, gate in enumerate("ifo")} if kind == "peephole" else {}
    kept = {} if kind == "rnn" else {"state": state}
    return stepped(cells_of(golden)[0], golden, values | peepholes | kept, levels), wanted


def all_operands(golden, seed=0):
    values = {}
    for cell in cells_of(golden):
        more, state = operands(golden, cell, seed=seed + len(values))
        values |= more
    return values, state


@pytest.mark.parametrize(("n", "levels"), [*((n, LEVELS) for n in range(len(WIDTHS))), (0, 6), (2, 6), (1, 9)])
@pytest.mark.parametrize("kind", [*KINDS, "after relu", "before relu", "rnn"])
def test_elements_equal_a_step_of_golden(kind, n, levels):
    golden = layer(kind, n)
    given, wanted = outcome(kind, golden, *all_operands(golden), levels)
    assert given == wanted


@pytest.mark.parametrize("levels", [LEVELS, 6])
@pytest.mark.parametrize("kind", KINDS)
def test_extremes_equal_a_step_of_golden(kind, levels):
    """Every corner of the operands, and the integers next to them."""
    golden = layer(kind, 0)
    values, _ = all_operands(golden)
    rng = np.random.default_rng(5)

    def corners(form):
        return rng.choice([form.lo, form.lo + 1, -1, 0, 1, form.hi - 1, form.hi], COUNT)

    form = golden.cell if golden.kind == "lstm" else golden.output_format
    given, wanted = outcome(kind, golden, {row: corners(golden.pre_format) for row in values}, corners(form), levels)
    assert given == wanted
    reached = golden.cell if kind == "lstm" else golden.output_format
    assert (max(wanted["next"]) >= reached.hi - 1) or kind == "peephole"


@pytest.mark.parametrize("levels", [LEVELS, 6])
@pytest.mark.parametrize(("kind", "port"), [
    *(("lstm", port) for port in (*LstmCell.rows, "state")), *(("after", port) for port in (*GruCell.rows, "state"))])
def test_each_operand_alone_and_its_delay(kind, port, levels):
    """One operand moves in one cycle only: the cycle in which it shows is that of the latency, whatever its way."""
    golden = layer(kind, 2)
    values = {row: np.full(COUNT, 300) for row in cells_of(golden)[0].rows}
    state = np.full(COUNT, 900)
    (values | {"state": state})[port][3] = -9000
    given, wanted = outcome(kind, golden, values, state, levels)
    assert wanted["y"][3] != wanted["y"][2] == wanted["y"][4]
    assert given == wanted


def test_the_latencies_are_those_of_the_stages():
    a = activation_latency()
    assert [cell.latency(layer(kind)) for kind in KINDS for cell in cells_of(layer(kind))] == [
        2 * a + 4, 2 * (a + 2) + 4, 2 * a + 5, a + 2, a + 3]
    a = activation_latency(6)
    assert [cell.latency(layer(kind), 6) for kind in KINDS for cell in cells_of(layer(kind))] == [
        2 * a + 2, 2 * (a + 1) + 3, 2 * a + 2, a + 1, a + 1]


def test_the_multiplications_of_an_element():
    assert [sum(cell.multiplications(layer(kind)) for cell in cells_of(layer(kind))) for kind in KINDS] == [8, 11, 5, 5]


def test_the_cells_of_each_layer():
    assert [cells_of(layer(kind)) for kind in KINDS] == [
        [LstmCell], [LstmCell], [GruCell], [ResetCell, CandidateCell]]


@pytest.mark.parametrize("n", range(len(WIDTHS)))
@pytest.mark.parametrize("kind", KINDS)
def test_the_golden_of_these_tests_is_a_step_of_the_layer(kind, n):
    """With the pre-activations that the layer's own products give."""
    golden = recurrent("lstm" if kind == "peephole" else kind, k=2, inputs=3, hidden=5, **KINDS[kind], **WIDTHS[n])
    x, state = numbers(golden.input_format, 40, 3), numbers(golden.output_format, 40, 5)

    def rows(product, *vectors):
        values = product(*(pad(vector, -(-vector.shape[1] // 2) * 2) for vector in vectors))
        return values.reshape(40, -1, 6)[..., :5]

    if golden.kind == "lstm":
        c = numbers(golden.cell, 40, 5, seed=3)
        pre = rows(golden.gates, x, state)
        made = pre_step(golden, {gate: pre[:, n] for n, gate in enumerate("ifgo")}, c)
        y, following = golden.step(x, state, c)
        assert (made["y"] == y).all() and (made["next"] == following).all()
        return
    r, z = rows(golden.gates, x, state).swapaxes(0, 1)
    if kind == "after":
        candidate = {"nx": rows(golden.candidate, x)[:, 0], "nh": rows(golden.candidate_recurrent, state)[:, 0]}
    else:
        second = pre_step(golden, {"r": r, "z": z, "n": z}, state)["second"]
        candidate = {"n": rows(golden.candidate, x, second)[:, 0]}
    assert (pre_step(golden, {"r": r, "z": z, **candidate}, state)["y"] == golden.step(x, state)).all()
