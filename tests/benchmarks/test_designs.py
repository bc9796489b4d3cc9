"""Hashes of designs: the same for the same design, others for another one."""
from dataclasses import replace

from benchmarks import designs


def test_hashes_tell_whether_a_design_has_changed(monkeypatch):
    shape = designs.Shape((4, 8), {"kind": "gru", "hidden": 8}, 4, {"multipliers": 60, "streams": 2})
    monkeypatch.setitem(designs.DESIGNS, "small", shape)
    first, again = (designs.measure(("small",)) for _ in range(2))
    assert designs.differences(again, first) == []
    assert again["designs"]["small"]["verilog"] == first["designs"]["small"]["verilog"]
    monkeypatch.setitem(designs.DESIGNS, "small", replace(shape, options={"multipliers": 20, "streams": 2}))
    other = designs.measure(("small",))
    assert designs.differences(other, first) == ["small: images, plans, cycles, multipliers, memory_bits"]
    assert other["designs"]["small"]["verilog"] != first["designs"]["small"]["verilog"]
    assert designs.differences({"designs": {"new": {}}}, first) == [], "a design of one measurement alone is no change"


def test_every_design_has_a_network():
    for name, shape in designs.DESIGNS.items():
        if "cell" not in shape.model:
            made = designs.network(name)
            assert made.name == name
            assert made.layers
