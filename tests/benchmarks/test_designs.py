"""Hashes of designs: the same for the same design, others for another one."""
from dataclasses import replace

from benchmarks import designs


def test_hashes_tell_whether_a_design_has_changed(monkeypatch):
    first, again = (designs.measure(("interleaved",), repeats=1) for _ in range(2))
    assert designs.differences(again, first) == []
    assert again["designs"]["interleaved"]["verilog"] == first["designs"]["interleaved"]["verilog"]
    shape = designs.DESIGNS["interleaved"]
    monkeypatch.setitem(designs.DESIGNS, "interleaved", replace(shape, options={"multipliers": 40, "streams": 3}))
    other = designs.measure(("interleaved",), repeats=1)
    assert designs.differences(other, first) == ["interleaved: images, plans, cycles, multipliers, memory_bits"]
    assert other["designs"]["interleaved"]["verilog"] != first["designs"]["interleaved"]["verilog"]
    assert designs.differences({"designs": {"new": {}}}, first) == [], "a design of one measurement alone is no change"


def test_every_design_has_a_network():
    for name, shape in designs.DESIGNS.items():
        if "cell" not in shape.model:
            made = designs.network(name)
            assert made.name == name
            assert made.layers
