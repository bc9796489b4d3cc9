"""Arithmetic apart from the other logic: products, and sums behind memories."""
from circulant.boards.asic.arithmetic import arithmetic_apart


def operation(kind, a, b, y):
    return {"hide_name": 1, "type": kind, "attributes": {}, "parameters": {"A_WIDTH": f"{len(a):b}"},
            "port_directions": {"A": "input", "B": "input", "Y": "output"}, "connections": {"A": a, "B": b, "Y": y}}


def bits(first, count=8):
    return list(range(first, first + count))


def test_products_that_are_alike_have_one_module():
    cells = {"p": operation("$mul", bits(10), bits(20), bits(30)), "q": operation("$mul", bits(40), bits(50), bits(60)),
             "squared": operation("$mul", bits(10), bits(10), bits(70)),
             "constant": operation("$mul", bits(10), ["1"] * 8, bits(80))}
    made = {"modules": {"top": {"cells": cells}}}
    assert arithmetic_apart(made, "top") == ["arithmetic_0", "arithmetic_1"]
    assert [cells[name]["type"] for name in ("p", "q", "squared", "constant")] == [
        "arithmetic_0", "arithmetic_0", "arithmetic_1", "$mul"]
    assert cells["q"]["connections"] == {"a": bits(40), "b": bits(50), "y": bits(60)}
    assert cells["squared"]["connections"] == {"a": bits(10), "y": bits(70)}
    inside = made["modules"]["arithmetic_1"]
    assert inside["cells"]["operation"]["connections"]["A"] == inside["cells"]["operation"]["connections"]["B"]
    assert [port["bits"] for port in inside["ports"].values()] == [bits(2), bits(10)]


def test_sums_behind_a_memory_are_apart_and_others_are_not():
    memory = {"type": "memory_0", "connections": {"rd_data": bits(10)}, "port_directions": {"rd_data": "output"}}
    cells = {"memory": memory, "mask": operation("$mux", bits(10), ["0"] * 8, bits(20)),
             "late": operation("$add", bits(20), bits(30), bits(40)),
             "behind": operation("$add", bits(40), bits(30), bits(50)),
             "short": operation("$add", bits(10, 4), bits(30, 4), bits(60, 5))}
    made = {"modules": {"top": {"cells": cells}}}
    assert arithmetic_apart(made, "top", sums=False) == []
    assert arithmetic_apart(made, "top") == ["arithmetic_0"]
    assert [cells[name]["type"] for name in ("late", "behind", "short")] == ["arithmetic_0", "$add", "$add"]
