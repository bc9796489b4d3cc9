"""Hashes of designs: the same for the same design, others for another one."""
from dataclasses import replace

from benchmarks import designs


def test_hashes_tell_whether_a_design_has_changed(monkeypatch):
    first, again = (designs.measure(("interleaved",), repeats=1)["designs"]["interleaved"] for _ in range(2))
    del first["seconds_generate"], again["seconds_generate"]
    assert first == again
    shape = designs.DESIGNS["interleaved"]
    monkeypatch.setitem(designs.DESIGNS, "interleaved", replace(shape, options={"multipliers": 40, "streams": 3}))
    other = designs.measure(("interleaved",), repeats=1)["designs"]["interleaved"]
    assert other["network"] == first["network"]
    assert all(other[name] != first[name] for name in ("plans", "images", "verilog", "multipliers"))


def test_every_design_has_a_network():
    for name, shape in designs.DESIGNS.items():
        if "cell" not in shape.model:
            made = designs.network(name)
            assert made.name == name
            assert made.layers
