import json

import pytest

from circulant.boards.levels import Netlist, Way


def cell(kind, ins, outs, **parameters):
    ports = {**{port: ("input", bits) for port, bits in ins.items()},
             **{port: ("output", bits) for port, bits in outs.items()}}
    return {"type": kind, "parameters": {name: format(value, "b") for name, value in parameters.items()},
            "port_directions": {port: way for port, (way, _) in ports.items()},
            "connections": {port: bits for port, (_, bits) in ports.items()}}


def register(d, q):
    return cell("FDRE", {"C": [1], "D": [d]}, {"Q": [q]})


def table(ins, out):
    return cell(f"LUT{len(ins)}", {f"I{n}": [bit] for n, bit in enumerate(ins)}, {"O": [out]})


@pytest.fixture
def netlist(tmp_path):
    def make(*cells, **names):
        nets = {name: {"hide_name": 0, "bits": [bit]} for name, bit in names.items()}
        module = {"cells": {f"cell{n}": each for n, each in enumerate(cells)}, "netnames": nets}
        (tmp_path / "netlist.json").write_text(json.dumps({"modules": {"top": module}}))
        return Netlist(tmp_path / "netlist.json", "top")
    return make


def test_tables_on_the_longest_way_count_and_carries_beside_them(netlist):
    cells = [register(9, 2), register(2, 3), table([2, 3], 4), cell("CARRY4", {"DI": [4, "0"]}, {"CO": [5]}),
             table([5, 2], 6), register(6, 7), table([3], 8), register(8, 10)]
    found = netlist(*cells, start=2, other=3, end=7, near=10).ways()
    assert found[0].end == "end" and found[0].start in ("start", "other")
    assert [(way.levels, way.carries, way.end) for way in found[:2]] == [(2, 1, "end"), (1, 0, "near")]
    assert found[2] == Way(0, 0, 0, "start", "other"), "a register behind a register has nothing in between"


def test_a_memory_of_tables_is_a_level_when_read_and_an_end_when_written(netlist):
    memory = cell("RAM32M", {"ADDRA": [2], "DIA": [3], "WCLK": [1]}, {"DOA": [4]})
    (way, *_) = netlist(register(5, 2), register(6, 3), memory, register(4, 7), address=2, end=7).ways(1)
    assert (way.levels, way.start, way.end) == (1, "address", "end")


def test_registers_around_a_product_may_lie_outside_or_within_its_block(netlist):
    def product(a, p, **parameters):
        return cell("DSP48E2", {"A": [a, "0"], "B": [3], "CLK": [1]}, {"P": [p]}, **parameters)

    registers = [register(20, 2), register(21, 3)]
    assert netlist(*registers, product(2, 4), register(4, 5)).bare_products() == []
    assert netlist(*registers, table([2], 6), product(6, 4), register(4, 5)).bare_products() == ["cell3"]
    assert netlist(*registers, product(2, 4), table([4], 6), register(6, 5)).bare_products() == ["cell2"]
    shifted = cell("SRL16E", {"A0": ["0"], "CLK": [1], "D": [2]}, {"Q": [6]})
    assert netlist(*registers, shifted, product(6, 4), register(4, 5)).bare_products() == []
    within = product(6, 4, AREG=1, PREG=1)
    assert netlist(*registers, table([2], 6), within, table([4], 7), register(7, 5)).bare_products() == []
