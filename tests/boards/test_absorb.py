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
    """A product of register 10 and port 20; its bits 30 and 31 go to registers 40 and 41."""
    product = {"type": "MULT18X18D", "parameters": {}, "connections": {
        "A0": [10], "A1": ["0"], "B0": [20], "B1": [20], "P0": [30], "P1": [31], "P2": [32]}}
    product["port_directions"] = {port: "output" if port[0] == "P" else "input" for port in product["connections"]}
    cells = {"product": product, "a": flop(11, 10), "low": flop(30, 40), "high": flop(31, 41)}
    ports = {"clk": {"direction": "input", "bits": [CLK]}, "x": {"direction": "input", "bits": [11, 20]},
             "y": {"direction": "output", "bits": [40, 41, 50]}}
    return {"modules": {"top": {"ports": ports, "cells": cells | changes}}}


def absorbed(tmp_path, described):
    path = tmp_path / "netlist.json"
    path.write_text(json.dumps(described))
    count = absorb(path, "top")
    return count, json.loads(path.read_text())["modules"]["top"]["cells"]


def test_the_register_of_a_result_is_taken_in_and_that_of_an_operand_stays(tmp_path):
    before = netlist()
    count, cells = absorbed(tmp_path, deepcopy(before))
    assert count == 1
    assert list(cells) == ["product", "a"], "the flip-flops of the result are gone"
    pins = cells["product"]["connections"]
    assert pins == {"A0": [10], "A1": ["0"], "B0": [20], "B1": [20], "P0": [40], "P1": [41], "P2": [32],
                    "CLK0": [CLK], "CE0": ["1"], "RST0": ["0"]}
    assert cells["product"]["parameters"] == {f"REG_OUTPUT_{kind}": f"{kind}0" for kind in ("CLK", "CE", "RST")}
    assert cells["a"] == before["modules"]["top"]["cells"]["a"]


@pytest.mark.parametrize("changes", [
    {"high": flop(31, 41, CEMUX="CE")}, {"high": flop(31, 41, REGSET="SET")}, {"high": flop(31, 41, lsr=7)},
    {"high": flop(31, 41, clk=3)}, {"other": flop(30, 50)},
    {"high": {"type": "LUT4", "parameters": {}, "port_directions": {"A": "input", "Z": "output"},
              "connections": {"A": [31], "Z": [41]}}}])
def test_what_would_do_something_else_stays_outside(tmp_path, changes):
    before = netlist(**changes)
    assert absorbed(tmp_path, deepcopy(before)) == (0, before["modules"]["top"]["cells"])


def test_a_result_that_leaves_the_module_is_read(tmp_path):
    described = netlist()
    described["modules"]["top"]["ports"]["raw"] = {"direction": "output", "bits": [31]}
    count, cells = absorbed(tmp_path, described)
    assert count == 0
    assert "low" in cells and "high" in cells
