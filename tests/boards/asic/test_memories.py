"""Memories apart from the logic: each in a module of its own, those that are alike in one."""
from circulant.boards.asic.memories import separate


def cell(*, words, width, writes, clocked="1", first=2):
    """A memory as Yosys writes it; its nets are counted from ``first``."""
    ports = {"RD_CLK": [first], "RD_EN": ["1"], "RD_ARST": ["0"], "RD_SRST": ["0"], "RD_ADDR": [first + 1, first + 2],
             "WR_CLK": [first] * writes, "WR_EN": [first + 3] * width * writes, "WR_ADDR": [first + 1, "0"] * writes,
             "WR_DATA": [first + 4] * width * writes, "RD_DATA": [first + 10 + n for n in range(width)]}
    return {"hide_name": 0, "type": "$mem_v2", "attributes": {}, "connections": ports,
            "port_directions": {name: "output" if name == "RD_DATA" else "input" for name in ports},
            "parameters": {"SIZE": f"{words:b}", "WIDTH": f"{width:b}", "RD_PORTS": "1", "WR_PORTS": f"{writes:b}",
                           "RD_CLK_ENABLE": clocked, "MEMID": "\\any"}}


def netlist(**cells):
    return {"modules": {"top": {"cells": cells}}}


def test_each_net_goes_in_once_and_constants_stay_within():
    made = netlist(ram=cell(words=4, width=3, writes=1))
    (memory,) = separate(made, "top", lambda words, width, rom=False: "")
    instance, module = made["modules"]["top"]["cells"]["circulant_memory_0"], made["modules"]["memory_0"]
    assert (memory.kind, memory.bits, memory.reads, memory.writes) == ("registers", 12, 1, 1)
    assert instance["connections"] == {"rd_clk": [2], "rd_addr": [3, 4], "wr_en": [5], "wr_data": [6],
                                       "rd_data": [12, 13, 14]}
    inside = module["cells"]["words"]["connections"]
    assert inside["RD_EN"] == ["1"] and inside["WR_ADDR"][1] == "0"
    assert inside["WR_CLK"] == inside["RD_CLK"] == module["ports"]["rd_clk"]["bits"]
    assert inside["WR_EN"] == module["ports"]["wr_en"]["bits"] * 3


def test_what_a_memory_gives_may_come_back_to_it():
    fed = cell(words=4, width=3, writes=1)
    fed["connections"] |= {"WR_DATA": fed["connections"]["RD_DATA"]}
    made = netlist(ram=fed)
    separate(made, "top", lambda words, width, rom=False: "")
    ports = made["modules"]["memory_0"]["ports"]
    assert made["modules"]["top"]["cells"]["circulant_memory_0"]["connections"]["wr_data"] == [12, 13, 14]
    assert not set(ports["wr_data"]["bits"]) & set(ports["rd_data"]["bits"]) and len(ports["rd_data"]["bits"]) == 3


def test_kinds_and_macros():
    made = netlist(a=cell(words=4, width=3, writes=0), b=cell(words=4, width=3, writes=1, clocked="0"),
                   c=cell(words=64, width=3, writes=1), d=cell(words=64, width=3, writes=1, first=50))
    found = separate(made, "top", lambda words, width, rom=False: f"ram{words}" if words >= 4 and not rom else "")
    assert [(memory.kind, memory.macro) for memory in found] == [
        ("rom", ""), ("asynchronous", ""), ("macro", "ram64"), ("macro", "ram64")]
    assert found[2].module == found[3].module != found[1].module


def test_fixed_contents_may_be_a_macro_and_are_kept():
    fixed = cell(words=4, width=3, writes=0)
    fixed["parameters"]["INIT"] = "111011001000"
    (memory,) = separate(netlist(a=fixed), "top", lambda words, width, rom=False: "rom" if rom else "")
    assert (memory.kind, memory.macro, memory.writes) == ("macro", "rom", 0)
    assert memory.contents == "000" "100" "110" "111"  # The lowest bit of each word first.
    (written,) = separate(netlist(a=cell(words=4, width=3, writes=1)), "top", lambda words, width, rom=False: "")
    assert written.contents == ""
