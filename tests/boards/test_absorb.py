"""Registers are taken in by multipliers where that changes nothing, and only there."""
import json
from copy import deepcopy

import pytest

from circulant.boards.absorb import absorb

CLK = 2
PLAIN = {"CEMUX": "1 ", "REGSET": "RESET"}


def flop(di, q, clk=CLK, lsr="0", **parameters):
    return {"type": "TRELLIS_FF", "parameters": PLAIN | parameters,
            "port_directions": {"CLK": "input", "DI": "input", "LSR": "input", "Q": "output"},
            "connections": {"CLK": [clk], "DI": [di], "LSR": [lsr], "Q": [q]}}


def netlist(**changes):
    """A product of bits 10 and 20, which are registers of 11 and 21; its bits 30 and 31 go to registers 40 and 41."""
    product = {"type": "MULT18X18D", "parameters": {}, "connections": {
        "A0": [10], "A1": ["0"], "B0": [20], "B1": [20], "P0": [30], "P1": [31], "P2": [32]}}
    product["port_directions"] = {port: "output" if port[0] == "P" else "input" for port in product["connections"]}
    cells = {"product": product, "a": flop(11, 10), "b": flop(21, 20), "low": flop(30, 40), "high": flop(31, 41)}
    ports = {"clk": {"direction": "input", "bits": [CLK]}, "x": {"direction": "input", "bits": [11, 21]},
             "y": {"direction": "output", "bits": [40, 41, 50]}}
    return {"modules": {"top": {"ports": ports, "cells": cells | changes}}}


def absorbed(tmp_path, described):
    path = tmp_path / "netlist.json"
    path.write_text(json.dumps(described))
    count = absorb(path, "top")
    return count, json.loads(path.read_text())["modules"]["top"]["cells"]


def test_all_three_registers_are_taken_in(tmp_path):
    count, cells = absorbed(tmp_path, netlist())
    assert count == 3
    assert list(cells) == ["product"], "their flip-flops are gone"
    pins = cells["product"]["connections"]
    assert pins | {"A0": [11], "A1": ["0"], "B0": [21], "B1": [21], "P0": [40], "P1": [41], "P2": [32]} == pins
    assert (pins["CLK0"], pins["CE0"], pins["RST0"]) == ([CLK], ["1"], ["0"])
    for register in ("INPUTA", "INPUTB", "OUTPUT"):
        assert cells["product"]["parameters"][f"REG_{register}_CLK"] == "CLK0"


def test_a_register_that_others_read_stays_for_them(tmp_path):
    count, cells = absorbed(tmp_path, netlist(other=flop(10, 50)))
    assert count == 3
    assert cells["a"]["connections"] == {"CLK": [CLK], "DI": [11], "LSR": ["0"], "Q": [10]}
    assert cells["product"]["connections"]["A0"] == [11]


@pytest.mark.parametrize(("changes", "register"), [
    ({"a": flop(11, 10, CEMUX="CE")}, "INPUTA"),
    ({"a": flop(11, 10, REGSET="SET")}, "INPUTA"),
    ({"a": flop(11, 10, lsr=7)}, "INPUTA"),
    ({"b": {"type": "LUT4", "parameters": {}, "port_directions": {"A": "input", "Z": "output"},
            "connections": {"A": [21], "Z": [20]}}}, "INPUTB"),
    ({"high": flop(31, 41, clk=3)}, "OUTPUT"),
    ({"other": flop(30, 50)}, "OUTPUT"),
])
def test_what_would_do_something_else_stays_outside(tmp_path, changes, register):
    before = netlist(**changes)
    count, cells = absorbed(tmp_path, deepcopy(before))
    assert count == 2
    assert f"REG_{register}_CLK" not in cells["product"]["parameters"]
    kept = before["modules"]["top"]["cells"]
    ports = {"INPUTA": ["A0"], "INPUTB": ["B0", "B1"], "OUTPUT": ["P0", "P1"]}[register]
    for port in ports:
        assert cells["product"]["connections"][port] == kept["product"]["connections"][port]
    assert all(cells[name] == kept[name] for name in changes)


def test_a_result_that_leaves_the_module_is_read(tmp_path):
    described = netlist()
    described["modules"]["top"]["ports"]["raw"] = {"direction": "output", "bits": [31]}
    count, cells = absorbed(tmp_path, described)
    assert count == 2
    assert "low" in cells and "high" in cells
