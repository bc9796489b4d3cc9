"""A netlist as tables, and the player that counts: against sums by hand."""
import shutil
import subprocess
from dataclasses import replace
from itertools import pairwise

import pytest

from circulant.boards.asic.memories import Memory
from circulant.boards.asic.netlist import Instance, Netlist
from circulant.boards.asic.power.activity import PLAYER
from circulant.boards.asic.power.tables import tables
from circulant.sim.refusal import Refusal, ToolError
from tests.boards.asic import tiny


def made():
    """A flip-flop behind a clock gate takes the inverse of another one, which takes the input; the output is their
    exclusive or."""
    ports = {"clk": ("input", [2]), "rst": ("input", [3]), "s_axis_tdata": ("input", [4]),
             "s_axis_tvalid": ("input", [5]), "s_axis_tlast": ("input", [6]), "m_axis_tready": ("input", [7]),
             "s_axis_tready": ("output", ["1"]), "m_axis_tvalid": ("output", ["1"]), "m_axis_tdata": ("output", [12])}
    return Netlist("top", ports, {
        "gate": Instance("GATE_1", {"CK": [2], "E": [6], "T": ["0"], "GCK": [8]}),
        "first": Instance("DFF_1", {"CK": [2], "D": [4], "Q": [9]}),
        "inverter": Instance("INV_1", {"A": [9], "Y": [10]}),
        "second": Instance("DFF_1", {"CK": [8], "D": [10], "Q": [11]}),
        "sum": Instance("XOR2_1", {"A": [9], "B": [11], "Y": [12]})}, {})


@pytest.fixture(scope="module")
def player(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    program = tmp_path_factory.mktemp("player") / "play"
    subprocess.run(["g++", "-std=c++17", "-O0", "-o", str(program), str(PLAYER)], check=True)
    return program


def played(player, folder, text, beats, due):
    (folder / "netlist.txt").write_text(text)
    (folder / "beats.txt").write_text("\n".join(beats) + "\n")
    subprocess.run([str(player), str(due)], cwd=folder, check=True)
    counts = [*map(int, (folder / "counts.txt").read_text().split())]
    half = len(counts) // 2  # Behind it those of cycles at rest.
    assert counts[half] == 512 and not any(counts[half + 1:half + 1 + int(text.split()[0])])
    return (folder / "outputs.txt").read_text().split(), counts[0], counts[1:half]


def test_toggles_and_pulses_are_counted(player, tmp_path):
    found = tables(made(), tiny.read(tmp_path), [])
    # First the mark of a last beat, which is the enable of the gate, then the bit.
    outputs, cycles, counts = played(player, tmp_path, found.text(), ["11", "00", "11", "11", "00", "10"], 6)
    # first: 0 1 0 1 1 0; second takes its inverse where the mark is 1: 1 1 1 0 0 0, as it began with the reset's 1.
    first, second = [0, 1, 0, 1, 1, 0], None
    toggles = {net: counts[number] for net, number in found.number.items() if isinstance(net, int)}
    assert cycles == 6
    assert toggles[9] == sum(a != b for a, b in pairwise(first)) == toggles[10]
    assert counts[len(found.number):] == [4]  # The gate's clock ran in the cycles with a mark.
    second = [int(x) ^ y for x, y in zip(outputs, first, strict=True)]
    expected = [second[0]]
    for mark, bit in zip([1, 0, 1, 1, 0], first, strict=False):
        expected.append(1 - bit if mark else expected[-1])
    assert second == expected
    assert toggles[11] == sum(a != b for a, b in pairwise(second)) > 0


def test_a_macro_gives_its_word_a_cycle_later(player, tmp_path):
    memory = Memory("memory_0", "circulant_memory_0", words=2, width=1, kind="macro", reads=1, writes=1,
                    macro="m", ports={"rd_addr": [2], "wr_data": [3], "rd_data": [4]}, cell={
                        "parameters": {"ABITS": "1", "RD_TRANSPARENCY_MASK": "0"},
                        "connections": {"RD_EN": ["1"], "RD_ADDR": [2], "RD_DATA": [4], "WR_EN": ["1"],
                                        "WR_ADDR": [2], "WR_DATA": [3]}})
    netlist = made()
    netlist.instances = {"circulant_memory_0": Instance("memory_0", {"rd_addr": [6], "wr_data": [4], "rd_data": [12]})}
    text = tables(netlist, tiny.read(tmp_path), [memory]).text()
    outputs, *_ = played(player, tmp_path, text, ["01", "10", "00", "11", "10", "01"], 6)
    # Each cycle reads the word at the mark, then writes the bit there: words 0 are 1, 0, 1; words 1 are 0, 1, 0.
    assert outputs[2:] == ["0", "1", "0", "1"]


def test_a_macro_with_fixed_contents_gives_them(player, tmp_path):
    memory = Memory("memory_0", "circulant_memory_0", words=2, width=2, kind="macro", reads=1, writes=0,
                    macro="m", ports={"rd_addr": [2], "rd_data": [3, 4]}, cell={
                        "parameters": {"ABITS": "1", "INIT": "0110"},
                        "connections": {"RD_EN": ["1"], "RD_ADDR": [2], "RD_DATA": [3, 4]}})
    netlist = made()
    netlist.ports["m_axis_tdata"] = ("output", [12, 13])
    netlist.instances = {"circulant_memory_0": Instance("memory_0", {"rd_addr": [6], "rd_data": [12, 13]})}
    text = tables(netlist, tiny.read(tmp_path), [memory]).text()
    outputs, *_ = played(player, tmp_path, text, ["00", "10", "00", "10"], 4)
    assert outputs[1:] == ["01", "10", "01"]  # Word 0 is 2 and word 1 is 1, the lowest bit first.


def test_what_is_tied_is_a_constant(tmp_path):
    library, netlist = tiny.read(tmp_path), made()
    cell = library.cells["DFF_1"]
    assert cell.sequential is not None
    library.cells["DFF_1"] = replace(cell, sequential=replace(cell.sequential, clear="!D"))
    for name in ("first", "second"):
        netlist.instances[name].pins["D"] = [20]
    netlist.instances["tie"] = Instance("HIGH", {"Y": [20]})
    found = tables(netlist, library, [])
    assert found.number[20] == 1 and len(found.gates) == 4  # Two states, the inverter, the sum.
    del netlist.instances["tie"]
    with pytest.raises(Refusal, match=r"^Asynchronous inputs of a netlist must be constant to be played, but DFF_1 \("):
        tables(netlist, library, [])


def test_what_cannot_be_played_is_refused(tmp_path):
    library, netlist = tiny.read(tmp_path), made()
    netlist.instances["second"].pins["CK"] = [10]
    with pytest.raises(ToolError, match=r"^Each clock of a netlist must come from clk, but that of second does not"):
        tables(netlist, library, [])
    cell = library.cells["DFF_1"]
    assert cell.sequential is not None
    library.cells["DFF_1"] = replace(cell, sequential=replace(cell.sequential, clock="!CK"))
    with pytest.raises(Refusal, match=r"^Flip-flops of a netlist must take rising edges to be played, but DFF_1 \("):
        tables(made(), library, [])
