"""Late gates with another structure: which ones they are, that they do the same, and that ABC must have said so."""
import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest

from circulant.boards.asic.cells.functions import parsed
from circulant.boards.asic.mapping import Settings
from circulant.boards.asic.netlist import Instance, Netlist
from circulant.boards.asic.timing import restructuring
from circulant.boards.asic.timing.restructuring import cone, restructured
from circulant.sim.refusal import ToolError
from tests.boards.asic import tiny

WIDTH = 12


def chain():
    """Registers, an AND of all of them one after the other, and a register behind it; half of it is an output, too."""
    instances = {f"state_reg[{n}]": Instance("DFF_1", {"CK": [2], "D": [10 + n], "Q": [30 + n]}) for n in range(WIDTH)}
    last = 30
    for n in range(1, WIDTH):
        instances[f"nand_{n}"] = Instance("NAND2_1", {"A": [last], "B": [30 + n], "Y": [60 + n]})
        instances[f"inv_{n}"] = Instance("INV_1", {"A": [60 + n], "Y": [80 + n]})
        last = 80 + n
    instances["all_reg"] = Instance("DFF_1", {"CK": [2], "D": [last], "Q": [3]})
    return Netlist("top", {"clk": ("input", [2]), "i": ("input", list(range(10, 10 + WIDTH))), "o": ("output", [3]),
                           "half": ("output", [80 + WIDTH // 2])}, instances, {})


def values(made, library, states):
    """The value of each net and its depth in gates, from those of the registers."""
    found = {30 + n: (states[n], 0) for n in range(WIDTH)}
    gates = [each for each in made.instances.values() if library.cell(each.cell).sequential is None]
    while gates:
        ready = [each for each in gates if all(each.pins[pin][0] in found for pin in library.cell(each.cell).inputs)]
        assert ready, "a loop"
        for each in ready:
            cell = library.cell(each.cell)
            read = {pin: found[each.pins[pin][0]] for pin in cell.inputs}
            (pin,) = cell.outputs
            function = parsed(cell.pins[pin].function)
            row = sum(read[name][0].astype(int) << n for n, name in enumerate(function.pins))
            found[each.pins[pin][0]] = (function.table()[row], 1 + max(depth for _, depth in read.values()))
        gates = [each for each in gates if each.pins[library.cell(each.cell).outputs[0]][0] not in found]
    return found


def test_it_reaches_back_to_registers_and_leaves_out_what_a_memory_reads(tmp_path):
    library, made = tiny.read(tmp_path), chain()
    gates = {f"{kind}_{n}" for kind in ("nand", "inv") for n in range(1, WIDTH)}
    assert cone(made, library, ["all_reg"]) == gates
    assert cone(made, library, ["inv_3"]) == {f"{kind}_{n}" for kind in ("nand", "inv") for n in range(1, 4)}
    # A tree of buffers behind a register stays; a gate of a memory, too, with the gates that it depends on.
    made.instances["buffer_0"] = Instance("BUF_2", {"A": [30], "Y": [50]})
    made.instances["nand_1"].pins["A"] = [50]
    made.instances["circulant_memory_0.u"] = Instance("INV_1", {"A": [82], "Y": [51]})
    made.instances["nand_9"].pins["B"] = [51]
    assert cone(made, library, ["all_reg"]) == gates - {"nand_1", "inv_1", "nand_2", "inv_2"}


def test_paths_become_shorter_and_every_net_that_is_read_keeps_its_value(tmp_path):
    library, made = tiny.read(tmp_path), chain()
    states = np.array(list(itertools.product([False, True], repeat=WIDTH))).T
    before = values(made, library, states)
    (tmp_path / "work").mkdir()
    assert restructured(made, library, ["all_reg"], work=tmp_path / "work",
                        libraries=["../tiny.lib"], settings=Settings(100.0)) > 0
    made.check(library)
    after = values(made, library, states)
    (data,), (_, (half,)) = made.instances["all_reg"].pins["D"], made.ports["half"]
    assert (after[data][0] == before[80 + WIDTH - 1][0]).all() and (after[half][0] == before[80 + WIDTH // 2][0]).all()
    assert before[80 + WIDTH - 1][0].sum() == 1 and before[80 + WIDTH - 1][1] == 2 * (WIDTH - 1)
    assert after[data][1] <= 6


def scripted(module, said):
    """What Yosys and ABC would write."""
    def yosys(folder, script, step):
        (Path(folder) / "restructured.json").write_text(json.dumps({"modules": {"late": module}}))
        (Path(folder) / "proof.log").write_text(said)
    return yosys


def inverter(net, behind):
    return {"type": "INV_1", "connections": {"A": [net], "Y": [behind]}}


def test_gates_are_written_in_the_order_of_the_netlist(tmp_path, monkeypatch):
    """ABC's result depends on it, and the order of a set of names on the process."""
    made = chain()
    module = {"ports": {"i": {"bits": list(range(2, 2 + WIDTH))}, "o": {"bits": [40, 41]}}, "cells": {}}
    monkeypatch.setattr(restructuring, "yosys", scripted(module, ""))
    order = [name for name in made.instances if not name.endswith(("_reg", "]"))]
    restructured(made, tiny.read(tmp_path), ["all_reg"], work=tmp_path, libraries=[], settings=Settings(100.0))
    assert re.findall(r"(?:NAND2|INV)_1 (\w+)", (tmp_path / "late.v").read_text()) == order


def test_a_structure_that_is_not_proven_is_an_error(tmp_path, monkeypatch):
    made = chain()
    module = {"ports": {"i": {"bits": [2, 3]}, "o": {"bits": [4]}}, "cells": {"a": inverter(2, 4)}}
    monkeypatch.setattr(restructuring, "yosys", scripted(module, "Networks are NOT EQUIVALENT"))
    with pytest.raises(ToolError, match=r"^ABC must map late gates to equal ones, but does not say so; see .*proof"):
        restructured(made, tiny.read(tmp_path), ["inv_1"], work=tmp_path, libraries=[], settings=Settings(100.0))
    assert made == chain()


def test_outputs_that_turn_out_to_be_one_net_become_one(tmp_path, monkeypatch):
    """`half`, `data` and what goes on are one net; a name that is in use is not given again."""
    library, made = tiny.read(tmp_path), chain()
    made.instances["more"] = Instance("INV_1", {"A": [62], "Y": [100]})
    made.ports["more"] = ("output", [100])
    made.ports["data"] = ("output", [82])
    used = {f"u{n}": Instance("INV_1", {"A": [2], "Y": [200 + n]}) for n in range(40, 80)}
    made.instances |= used
    assert restructuring._border(made, library, cone(made, library, ["inv_2"])) == ([30, 31, 32], [62, 82])
    module = {"ports": {"i": {"bits": [2, 3, 4]}, "o": {"bits": [5, 3]}}, "cells": {"a": inverter(3, 5)}}
    monkeypatch.setattr(restructuring, "yosys", scripted(module, restructuring.PROVEN))
    assert restructured(made, library, ["inv_2"], work=tmp_path, libraries=[], settings=Settings(100.0)) == 1
    assert made.ports["data"] == ("output", [31]) and made.instances["nand_3"].pins["A"] == [31]
    assert made.instances["more"].pins["A"] == [62]
    assert [each.pins for each in made.instances.values() if each.pins.get("Y") == [62]] == [{"A": [31], "Y": [62]}]
    assert used.items() <= made.instances.items()
    made.check(library)


def test_a_register_behind_a_register_has_no_late_gates(tmp_path):
    made = chain()
    assert restructured(made, tiny.read(tmp_path), ["state_reg[0]"], work=tmp_path, libraries=[],
                        settings=Settings(100.0)) is None
