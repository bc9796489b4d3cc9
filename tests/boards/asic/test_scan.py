"""A chain through flip-flops, on a netlist of three."""
import pytest

from circulant.boards.asic.netlist import Instance, Netlist
from circulant.boards.asic.scan import stitch
from circulant.sim.refusal import Refusal
from tests.boards.asic import tiny


def made():
    return Netlist("top", {"clk": ("input", [2]), "e": ("input", [3]), "q": ("output", [9])}, {
        "gate": Instance("GATE_1", {"CK": [2], "E": [3], "T": ["0"], "GCK": [4]}),
        **{name: Instance("DFF_1", {"CK": [clock], "D": [data], "Q": [state]})
           for name, clock, data, state in (("a", 2, 9, 7), ("b", 4, 7, 8), ("c", 2, 8, 9))}}, {})


def test_each_flip_flop_takes_the_one_before(tmp_path):
    netlist, library = made(), tiny.read(tmp_path)
    assert stitch(netlist, library) == 3
    enable, first = netlist.ports["scan_enable"][1], netlist.ports["scan_in"][1]
    chain = [netlist.instances[name] for name in "abc"]
    assert [each.cell for each in chain] == ["SDFF_1"] * 3
    assert [each.pins["SI"] for each in chain] == [first, [7], [8]]
    assert all(each.pins["SE"] == enable for each in [*chain]) and netlist.instances["gate"].pins["T"] == enable
    assert netlist.ports["scan_out"] == ("output", [9])
    assert [each.pins["D"] for each in chain] == [[9], [7], [8]]
    netlist.check(library)


def test_a_library_without_scan_flip_flops_is_refused(tmp_path):
    library = tiny.read(tmp_path)
    del library.cells["SDFF_1"]
    with pytest.raises(Refusal, match=r"^A scan chain needs a scan form of DFF_1, but tiny\.lib has none; leave out "
                                      "--scan$"):
        stitch(made(), library)
