"""1/√v equals golden for every number of bits, one in each cycle."""
import numpy as np
import pytest

from circulant.hw.components.rsqrt import InverseRoot
from circulant.sim.arith.rsqrt import inverse_root
from tests.hw.simulate import trace


@pytest.mark.parametrize(("width", "levels"), [(2, 4), (9, 4), (18, 4), (31, 4), (60, 4), (31, 6), (60, 9), (17, 12)])
def test_equals_golden(width, levels):
    rng = np.random.default_rng(width)
    few = [1 << n for n in range(width)] + [(1 << n + 1) - 1 for n in range(width)]
    v = np.array([*few, *np.maximum(1, 2 ** rng.uniform(0, width, 300)).astype(np.int64).clip(1, (1 << width) - 1)])
    dut = InverseRoot(width=width, name="starts", levels=levels)
    shown = trace(dut, {"v": v.tolist()}, extra=dut.latency)
    root, places = inverse_root(v)
    assert shown["root"][dut.latency:] == root.tolist()
    assert shown["places"][dut.latency:] == places.tolist()
