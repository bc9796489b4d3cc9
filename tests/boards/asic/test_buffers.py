"""Trees of buffers and stronger cells, on a netlist of a few gates."""
import pytest

from circulant.boards.asic.buffers import buffer
from circulant.boards.asic.netlist import Instance, Netlist
from tests.boards.asic import tiny


@pytest.fixture
def library(tmp_path):
    return tiny.read(tmp_path)


def netlist(readers):
    """A flip-flop whose output goes to so many inverters."""
    instances = {"flop": Instance("DFF_1", {"CK": [2], "D": [3], "Q": [4]})}
    instances |= {f"read_{n}": Instance("INV_1", {"A": [4], "Y": [5 + n]}) for n in range(readers)}
    return Netlist("top", {"clk": ("input", [2]), "d": ("input", [3]),
                           "q": ("output", [5 + n for n in range(readers)])}, instances, {4: "state"})


def follow(made, net):
    """The net that a net is a copy of."""
    for instance in made.instances.values():
        if instance.cell.startswith("BUF") and instance.pins["Y"][0] == net:
            return follow(made, instance.pins["A"][0])
    return net


def test_no_net_but_a_clock_drives_more_than_is_allowed(library):
    made = netlist(300)
    count = buffer(made, library, fanout=8)
    fan = {}
    for instance in made.instances.values():
        for pin, (net,) in instance.pins.items():
            if library.cells[instance.cell].pins[pin].direction == "input":
                fan[net] = fan.get(net, 0) + 1
    assert max(fan.values()) <= 8 and count == sum(each.cell.startswith("BUF") for each in made.instances.values())
    assert {follow(made, made.instances[f"read_{n}"].pins["A"][0]) for n in range(300)} == {4}
    made.check(library)


def test_few_readers_and_the_clock_need_no_buffer(library):
    made = netlist(8)
    made.instances |= {f"flop_{n}": Instance("DFF_1", {"CK": [2], "D": [3], "Q": [100 + n]}) for n in range(8)}
    assert buffer(made, library, fanout=8) == 2  # For the nine data pins; none for the clock.
    assert all(made.instances[f"flop_{n}"].pins["CK"] == [2] for n in range(8))


def test_a_constant_needs_no_buffer(library):
    """Behind one a reset would not be a constant any more to what plays netlists."""
    made = netlist(20)
    made.instances["flop"] = Instance("HIGH", {"Y": [4]})
    assert buffer(made, library, fanout=8) == 0


def test_a_buffer_within_a_memory_is_part_of_it(library):
    made = netlist(0)
    made.instances |= {f"circulant_memory_3.u{n}": Instance("INV_1", {"A": [4], "Y": [60 + n]}) for n in range(20)}
    buffer(made, library, fanout=8)
    names = [name for name, each in made.instances.items() if each.cell.startswith("BUF")]
    assert names == [f"circulant_memory_3.buffer_{n}" for n in range(3)]
