import numpy as np
import pytest

from circulant.hw.pointwise import GruPointwise
from circulant.sim.fixed import round_shift, saturate
from tests.hw.golden import network, numbers
from tests.hw.simulate import trace

WIDTHS = [{"activation_bits": 8}, {"activation_bits": 12, "segments": 16}, {"activation_bits": 16}]
PORTS = ("xr", "xz", "xn", "hr", "hz", "hn", "h")


def layer(**widths):
    return network(4, 8, 4, **widths).layers[0]


def operands(gru, count):
    """Pre-activations over the whole format in the first half, near zero in the second; states."""
    values = {port: numbers(gru.output_format if port == "h" else gru.pre_format, count, seed=n)
              for n, port in enumerate(PORTS)}
    for port in PORTS[:-1]:
        values[port][count // 2:] >>= 3
    return values


def golden(gru, xr, xz, xn, hr, hz, hn, h):
    """`sim.gru.Gru.step` behind its products."""
    width, one = gru.pre_format.width, gru.output_format.frac
    r, z = gru.sigmoid(saturate(xr + hr, width)), gru.sigmoid(saturate(xz + hz, width))
    n = gru.tanh(saturate(xn + round_shift(r * hn, one), width))
    return saturate(n + round_shift(z * (h - n), one), gru.output_format.width)


def stepped(gru, values):
    unit = GruPointwise(gru, name="gru")
    columns = {port: column.tolist() for port, column in values.items()}
    return trace(unit, columns, extra=unit.latency)["y"][unit.latency:]


@pytest.mark.parametrize("widths", WIDTHS)
def test_elements_equal_golden(widths):
    gru = layer(**widths)
    values = operands(gru, 400)
    assert stepped(gru, values) == golden(gru, **values).tolist()


def test_the_golden_of_this_test_is_a_step_of_the_layer():
    """Both products are replaced by given pre-activations."""
    gru = layer()
    values = {port: column[:8] for port, column in operands(gru, 8).items()}
    driven = np.array([[values[port] for port in ("xr", "xz", "xn")]])
    gru.__dict__["_gates"] = lambda product, x: np.array([[values[port] for port in ("hr", "hz", "hn")]])
    assert gru.step(driven, values["h"][None])[0].tolist() == golden(gru, **values).tolist()


@pytest.mark.parametrize("port", PORTS)
def test_each_operand_alone_and_its_delay(port):
    """One operand moves in one cycle only: the cycle in which it shows is that of the latency, whatever its way."""
    gru = layer(activation_bits=8)
    values = {name: np.full(12, 9) for name in PORTS}
    values[port][3] = -97
    result = golden(gru, **values).tolist()
    assert result[3] != result[2] == result[4]
    assert stepped(gru, values) == result


def test_sums_saturate():
    gru = layer(activation_bits=8)
    form = gru.pre_format
    corners = np.array([[a, b] for a in (form.lo, form.hi, 0) for b in (form.lo, form.hi, 0)]).T
    values = {"xr": corners[0], "hr": corners[1], "xz": corners[0][::-1], "hz": corners[1][::-1], "xn": corners[0],
              "hn": corners[1], "h": np.resize([gru.output_format.lo, gru.output_format.hi], 9)}
    assert stepped(gru, values) == golden(gru, **values).tolist()


def test_the_latency_is_that_of_the_stages():
    assert GruPointwise.latency == 1 + 4 + 2 + 4 + 3
    assert GruPointwise.multiplications == 5
