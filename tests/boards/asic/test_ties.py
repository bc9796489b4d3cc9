"""Inverters and ties that a netlist does without; each register, taken as transparent, gives what it gave."""
import random
from dataclasses import replace
from itertools import product

import pytest

from circulant.boards.asic.cells.functions import parsed
from circulant.boards.asic.inversions import spare_inverters, spare_ties
from circulant.boards.asic.netlist import Instance, Netlist
from tests.boards.asic import tiny

INPUTS = (3, 4, 5)


@pytest.fixture
def library(tmp_path):
    """The small library with two gates more."""
    found = tiny.read(tmp_path)
    for name, base, function in (("XNOR2_1", "XOR2_1", "!(A^B)"), ("NOR2B_1", "NOR2_1", "!(A|!B)")):
        cell = found.cells[base]
        found.cells[name] = replace(cell, name=name, pins=cell.pins | {"Y": replace(cell.pins["Y"], function=function)})
    return found


def netlist(instances, **outputs):
    ports = {"clk": ("input", [2]), "i": ("input", list(INPUTS))}
    made = {name: Instance(cell, {pin: [net] for pin, net in pins.items()}) for name, (cell, pins) in instances.items()}
    return Netlist("top", ports | {name: ("output", [net]) for name, net in outputs.items()}, made, {})


def value(made, library, net, given):
    """The value of a net, registers taken as transparent."""
    if net in given or isinstance(net, str):
        return given.get(net, net == "1")
    name, pin = next((name, pin) for name, instance in made.instances.items() for pin in
                     library.cell(instance.cell).outputs if instance.pins.get(pin) == [net])
    instance = made.instances[name]
    cell = library.cell(instance.cell)
    if cell.sequential:
        return value(made, library, instance.pins["D"][0], given) ^ (pin == "QN")
    function = parsed(cell.pins[pin].function)
    at = sum(int(value(made, library, instance.pins[each][0], given)) << n for n, each in enumerate(function.pins))
    return bool(function.table()[at])


def shown(made, library):
    """Every output for all inputs."""
    return [[value(made, library, nets[0], dict(zip(INPUTS, bits, strict=True))) for direction, nets in
             made.ports.values() if direction == "output"] for bits in product((False, True), repeat=len(INPUTS))]


def cells(made):
    return sorted(instance.cell for instance in made.instances.values())


def test_a_register_keeps_the_inverse_of_what_an_inverter_gave_it(library):
    made = netlist({"a": ("INV_1", {"A": 3, "Y": 6}), "r": ("DFF_1", {"CK": 2, "D": 6, "Q": 7})}, o=7)
    before = shown(made, library)
    assert spare_inverters(made, library) == 1 and cells(made) == ["DFF_1"]
    assert made.instances["r"].pins["D"] == [3] and made.instances["r"].pins["QN"] == [7]
    assert shown(made, library) == before
    made.check(library)


def test_an_inverse_output_stands_for_inverters_of_the_other(library):
    made = netlist({"r": ("DFF_1", {"CK": 2, "D": 3, "Q": 6}), "a": ("INV_1", {"A": 6, "Y": 7}),
                    "b": ("INV_4", {"A": 6, "Y": 8})}, o=6, p=7, q=8)
    before = shown(made, library)
    assert spare_inverters(made, library) == 2 and cells(made) == ["DFF_1"]
    assert shown(made, library) == before
    made.check(library)


def test_a_register_that_something_else_sets_stays_as_it_is(library):
    cell = library.cells["DFF_1"]
    library.cells["DFF_1"] = replace(cell, pins=cell.pins | {"RN": cell.pins["D"]},
                                     sequential=replace(cell.sequential, clear="!RN"))
    made = netlist({"a": ("INV_1", {"A": 3, "Y": 6}), "r": ("DFF_1", {"CK": 2, "D": 6, "RN": 4, "Q": 7})}, o=7)
    assert spare_inverters(made, library) == 0
    made.instances["high"] = Instance("HIGH", {"Y": [9]})
    made.instances["r"].pins["RN"] = [9]
    assert spare_inverters(made, library) == 1


def test_an_inverter_that_others_read_stays(library):
    made = netlist({"a": ("INV_1", {"A": 3, "Y": 6}), "r": ("DFF_1", {"CK": 2, "D": 6, "Q": 7})}, o=7, p=6)
    assert spare_inverters(made, library) == 0


@pytest.mark.parametrize(("instances", "left"), [
    # The driver takes the inverse form, where nothing else reads it.
    ({"x": ("XOR2_1", {"A": 3, "B": 4, "Y": 6}), "a": ("INV_1", {"A": 6, "Y": 9})}, ["XNOR2_1"]),
    # All readers take a form with the pin inverted.
    ({"a": ("INV_1", {"A": 3, "Y": 6}), "x": ("XOR2_1", {"A": 6, "B": 4, "Y": 7}),
      "n": ("NOR2_1", {"A": 6, "B": 7, "Y": 9})}, ["NOR2B_1", "XNOR2_1"]),
    # No gate is a NAND with an inverted pin.
    ({"a": ("INV_1", {"A": 3, "Y": 6}), "n": ("NAND2_1", {"A": 6, "B": 4, "Y": 9})}, ["INV_1", "NAND2_1"]),
])
def test_gates_take_other_forms(library, instances, left):
    made = netlist(instances, o=9)
    before = shown(made, library)
    spare_inverters(made, library)
    assert cells(made) == left and shown(made, library) == before
    made.check(library)


def test_a_buffer_of_one_pin_goes(library):
    few = {"r": ("DFF_1", {"CK": 2, "D": 3, "Q": 6}), "b": ("BUF_2", {"A": 6, "Y": 7}),
           "c": ("BUF_2", {"A": 7, "Y": 8}), "x": ("XOR2_1", {"A": 6, "B": 8, "Y": 9})}
    made = netlist(few, o=9, p=7)
    before = shown(made, library)
    assert spare_inverters(made, library) == 2 and cells(made) == ["DFF_1", "XOR2_1"]
    assert shown(made, library) == before
    made = netlist(few | {"n": ("NAND2_1", {"A": 7, "B": 5, "Y": 20})}, o=9)
    spare_inverters(made, library)
    assert cells(made).count("BUF_2") == 1  # That of two pins.
    made.check(library)


def test_random_netlists_give_what_they_gave(library):
    spared = 0
    for seed in range(15):
        rng = random.Random(seed)
        nets, instances = list(INPUTS), {}
        for n in range(25):
            cell = rng.choice(["INV_1", "BUF_2", "INV_1", "DFF_1", "XOR2_1", "NAND2_1", "NOR2_1", "NOR2B_1", "XNOR2_1"])
            pins = {pin: rng.choice(nets[-6:]) for pin in ("A", "B")[:len(library.cell(cell).inputs)]}
            if cell == "DFF_1":
                pins = {"CK": 2, "D": rng.choice(nets[-6:]), "Q": 20 + n}
            instances[f"g{n}"] = cell, pins if cell == "DFF_1" else pins | {"Y": 20 + n}
            nets.append(20 + n)
        made = netlist(instances, **{f"o{net}": net for net in rng.sample(nets[8:], 6)})
        before = shown(made, library)
        spared += spare_inverters(made, library)
        made.check(library)
        assert shown(made, library) == before, f"seed {seed}"
    assert spared > 30


def test_ties_serve_so_many_pins_each(library):
    made = netlist({f"t{n}": ("HIGH", {"Y": 100 + n}) for n in range(20)}
                   | {f"n{n}": ("NAND2_1", {"A": 3, "B": 100 + n, "Y": 200 + n}) for n in range(20)}
                   | {"low": ("LOW", {"Y": 150}), "m": ("NOR2_1", {"A": 150, "B": 4, "Y": 9})},
                   **{f"o{n}": 200 + n for n in range(20)}, p=9)
    before = shown(made, library)
    assert spare_ties(made, library, fanout=8) == 17
    made.check(library)
    reads = [instance.pins["B"][0] for name, instance in made.instances.items() if name.startswith("n")]
    assert sorted(reads.count(net) for net in set(reads)) == [4, 8, 8] and "LOW" in cells(made)
    assert shown(made, library) == before
