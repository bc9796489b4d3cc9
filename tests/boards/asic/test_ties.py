"""Ties that a netlist does without: each pin reads the constant that it read."""
from circulant.boards.asic.netlist import Instance, Netlist
from circulant.boards.asic.ties import spare_ties
from tests.boards.asic import tiny


def test_ties_serve_so_many_pins_each(tmp_path):
    library = tiny.read(tmp_path)
    instances = ({f"t{n}": ("HIGH", {"Y": 100 + n}) for n in range(20)}
                 | {f"n{n}": ("NAND2_1", {"A": 3, "B": 100 + n, "Y": 200 + n}) for n in range(20)}
                 | {"low": ("LOW", {"Y": 150}), "m": ("NOR2_1", {"A": 150, "B": 4, "Y": 9})})
    outputs = {f"o{n}": ("output", [200 + n]) for n in range(20)} | {"p": ("output", [9]), "q": ("output", [119])}
    cells = {name: Instance(cell, {pin: [net] for pin, net in pins.items()})
             for name, (cell, pins) in instances.items()}
    made = Netlist("top", {"i": ("input", [3, 4]), **outputs}, cells, {})
    assert spare_ties(made, library, fanout=8) == 17
    made.check(library)
    highs = {instance.pins["Y"][0] for instance in made.instances.values() if instance.cell == "HIGH"}
    reads = [instance.pins["B"][0] for name, instance in made.instances.items() if name.startswith("n")]
    assert set(reads) == highs and sorted(map(reads.count, highs)) == [4, 8, 8]
    assert made.ports["q"][1][0] == made.instances["n19"].pins["B"][0], "a port reads the same constant"
    assert made.instances["m"].pins["A"] == [150] and made.instances["low"].cell == "LOW"
