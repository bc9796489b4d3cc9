import numpy as np
import pytest

from circulant.hw import generate
from circulant.hw.array.parts import Memory
from circulant.hw.emit.inventory import Inventory
from circulant.hw.emit.profile import GENERIC, PROFILES, profile_of
from circulant.hw.emit.target import VerilogTarget
from circulant.hw.resources import inventory
from circulant.sim.cosim import verify
from circulant.sim.refusal import Refusal
from tests.hw import golden

FAMILIES = sorted(PROFILES)


@pytest.mark.parametrize(("family", "place"), [
    ("generic", "distributed"), ("xilinx", "distributed"), ("ice40", "registers"), ("gowin", "distributed")])
def test_a_small_memory_lies_in_look_up_tables_where_a_family_has_such(family, place):
    assert PROFILES[family].place(6, 30, asynchronous=True) == PROFILES[family].place(6, 30) == place


def test_a_larger_memory_of_an_ice40_lies_in_block_ram():
    assert Memory(1, 65, 8, asynchronous=True).place(PROFILES["ice40"]) == "block"
    assert Memory(1, 8, 20, writable=False, loadable=True).place(PROFILES["ice40"]) == "registers"
    assert Memory(1, 65, 8, asynchronous=True).place(GENERIC) == "distributed"


@pytest.mark.parametrize(("shape", "writable", "pieces"), [
    ((23, 33), True, [(23, 32, "block"), (23, 1, "registers")]),
    ((35, 40), False, [(35, 32, "block"), (35, 8, "logic")]),
    ((264, 32), False, [(256, 32, "block"), (8, 32, "logic")]),
    ((264, 32), True, [(264, 32, "block")]),
    ((240, 22), False, [(240, 22, "block")]),
    ((16, 32), True, [(16, 32, "block")])])
def test_what_sticks_out_of_whole_block_rams_lies_beside_them_where_that_takes_fewer(shape, writable, pieces):
    assert [tuple(each) for each in PROFILES["ice40"].pieces(*shape, writable=writable)] == pieces
    assert len(PROFILES["ecp5"].pieces(*shape, writable=writable)) == 1


def test_a_memory_that_can_be_loaded_is_whole():
    assert [tuple(each) for each in Memory(1, 40, 35, writable=False, loadable=True).pieces(PROFILES["ice40"])] == [
        (35, 40, "block")]


def test_fixed_contents_lie_in_logic_or_block_ram_everywhere():
    for profile in PROFILES.values():
        assert profile.place(16, 30, writable=False) == "logic" and profile.place(33, 30, writable=False) == "block"


def test_words_of_tools_lead_back_to_places():
    for profile in PROFILES.values():
        for place in ("block", "distributed", "registers", "logic"):
            assert profile.place_of(profile.word(place)) == place


def test_a_simulation_is_generic():
    assert profile_of(None) is GENERIC and profile_of(VerilogTarget(PROFILES["ice40"])) is PROFILES["ice40"]


def test_an_unknown_family_names_the_nearest():
    with pytest.raises(Refusal, match=r"^A family must be one of generic, .*, not 'ice4'; did you mean 'ice40'\?$"):
        generate(golden.network(2, 6, 4, outputs=3, k_out=1), multipliers=12, family="ice4")


@pytest.fixture(scope="module")
def designs():
    """One network for each family, its products folded and its sums in several slots."""
    network = golden.network(4, 8, 4, outputs=3, k_out=1)
    return {family: generate(network, multipliers=9, family=family, objective="throughput") for family in FAMILIES}


@pytest.mark.parametrize("family", FAMILIES)
def test_memories_are_foreseen_for_each_family(designs, family):
    design = designs[family]
    counted = Inventory.from_json(design.manifest["resources"])
    foreseen = inventory(design.network, design.plans, profile=family)
    assert foreseen.memories == counted.memories and foreseen.products == counted.products
    assert (any(place == "distributed" for _, _, place in counted.memories)) == PROFILES[family].asynchronous


def test_the_verilog_speaks_the_words_of_the_familys_tools(designs):
    assert 'ramstyle = "MLAB"' in designs["intel"].verilog and "ram_style" not in designs["intel"].verilog
    assert '"logic"' not in designs["xilinx"].verilog, "Vivado has no such rom_style"
    assert "module circulant_table" in designs["xilinx"].verilog
    assert '"distributed"' not in designs["ice40"].verilog


def test_no_multiplier_is_spent_on_an_address(designs):
    for design in designs.values():
        products = [line for line in design.verilog.splitlines() if " * " in line and not line.startswith(("//", "(*"))]
        assert len([line for line in products if "'h" in line or "'d" in line]) == 0, products


def test_results_are_the_same_to_the_bit_in_every_family(designs, tmp_path):
    """The iCE40's sums are read from memories with a clock edge, the others' from look-up tables."""
    network = designs["ice40"].network
    vectors = network.vectors(np.random.default_rng(3).normal(0, 1, (6, 4, network.flow.size)))
    found = verify(designs["ice40"].write(tmp_path / "design"), vectors)
    assert found.mismatches == 0 and found.words > 0
    assert found.cycles_per_step == max(layer["cycles"] for layer in designs["generic"].manifest["layers"])
