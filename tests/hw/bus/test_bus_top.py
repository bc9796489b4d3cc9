"""A design behind AXI4-Lite under Verilator, with a host of cocotbext-axi on a clock of its own: the golden model's
outputs."""
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from circulant.hw import generate, writes
from circulant.hw.bus.bus_top import TOP
from circulant.hw.bus.register_file import RegisterFile
from circulant.sim.cosim import toolchain, worker
from circulant.sim.cosim.build import ARGUMENTS, UNSPLIT, _stand_in
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal
from circulant.sim.registers import IDENTIFICATION, RegisterMap
from tests.hw import drawn_layers as layers
from tests.hw import simulate

BUILD = ("import json, sys; from cocotb_tools.runner import get_runner; "
         "get_runner('verilator').build(**json.loads(sys.argv[1]))")


def made(seed):
    return Network.chain(f"small {seed}", 4, True, (layers.gru(seed, k=2, inputs=4, hidden=4, reset="after"),))


def beats(manifest, network, x):
    """What is sent, and what has to come, as (last, data)."""
    def packed(port, values):
        lines = port.pack(values).reshape(-1, port.beat_bytes)
        return [(int(n == len(lines) - 1), line[::-1].tobytes().hex()) for n, line in enumerate(lines)]

    y = network.run_integers(x[None])[0]
    return packed(manifest.input, x), [(last, int(data, 16)) for last, data in packed(manifest.output, y)]


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Design, networks and inputs; what the host found with a slow and with a fast bus."""
    folder = tmp_path_factory.mktemp("bus")
    own, other = made(3), made(5)
    design = generate(own, multipliers=12, reloadable=True, bus="axi4-lite", objective="throughput")
    where = design.write(folder / "design")
    manifest = Manifest.load(where)
    lo, hi = own.input_format.lo, own.input_format.hi
    x = np.random.default_rng(1).integers(lo // 2, hi // 2, (6, 4))
    given, expected = beats(manifest, own, x)
    _, others = beats(manifest, other, x)
    port = design.configuration
    load = [*port.hold(), *port.load(writes(design, other)), *port.release()]
    save = [*port.hold(), *port.save(), *port.restart(0), *port.release()]
    tools = toolchain.find()
    environment, built = tools.environment() | _stand_in(tools), folder / "built"
    visible = folder / "visible.vlt"
    ports = "".join(f'public_flat_rw -module "{TOP}" -var "{port["name"]}"\n'
                    for port in design.manifest["bus"]["ports"])
    visible.write_text(f"`verilator_config\n{ports}")
    sources = [visible, where / "top.v", where / f"{TOP}.v"]
    arguments = json.dumps({"hdl_toplevel": TOP, "build_dir": str(built), "timescale": ["1ns", "1ps"],
                            "sources": [str(source) for source in sources], "build_args": [*ARGUMENTS, *UNSPLIT]})
    status = worker.run([sys.executable, "-c", BUILD, arguments], "Verilator", folder=folder, log=folder / "build.log",
                        environment=environment, poll=lambda: None, step="compiling", seconds=600)
    assert status == 0, (folder / "build.log").read_text()
    for image in manifest.images:
        shutil.copy(image, built)
    found = []
    for picoseconds in (3700, 23_100):
        job = folder / f"job-{picoseconds}.json"
        job.write_text(json.dumps({
            "bus_ps": picoseconds, "own": {"given": given}, "other": {"given": given}, "count": len(expected),
            "load": load, "save": save, "into": str(folder / "found.json")}))
        log = folder / f"run-{picoseconds}.log"
        worker.run([str(built / TOP)], "cocotb", folder=built, log=log, environment={
            **environment, **tools.test("tests.hw.bus.bus_bench", TOP, seed=1), "CIRCULANT_BUS_JOB": str(job)},
                   poll=lambda: None, step="simulating", seconds=600)
        assert (folder / "found.json").exists(), log.read_text()[-4000:]
        found.append(json.loads((folder / "found.json").read_text()))
        (folder / "found.json").unlink()
    return {"design": design, "other": other, "x": x, "expected": expected, "others": others, "found": found,
            "folder": where}


@pytest.fixture(params=[0, 1], ids=["a fast bus", "a slow bus"])
def found(request, played):
    return played["found"][request.param]


def test_it_says_who_it_is(played, found):
    words = found["id"]
    assert words[:2] == [IDENTIFICATION, 1]
    assert "".join(f"{word:08x}" for word in words[2:]) == played["design"].network.hash


def test_what_there_is_not_is_refused_and_remembered(found):
    assert found["refused"] == [2] * 5, "SLVERR: no register, none, read only, parts of a word"
    assert found["errors"] == [4, 0, 0], "until a one is written to it"


def test_outputs_are_the_golden_ones_before_and_after_a_soft_reset(played, found):
    assert [tuple(each) for each in found["own"]] == played["expected"]
    assert [tuple(each) for each in found["again"]] == played["expected"], "the half sequence is forgotten"
    assert [found[name] & 7 for name in ("idle", "busy", "after_reset")] == [0, 1, 0]
    assert found["idle"] & 8, "there is a configuration port"


def test_weights_that_are_loaded_through_the_bus_are_the_golden_models(played, found):
    assert [tuple(each) for each in found["other"]] == played["others"]
    assert played["others"] != played["expected"]


def test_a_state_that_is_read_is_the_golden_one(played, found):
    network, x = played["other"], played["x"]
    _, states = network.resume(x[None, :3], network.initial(1))
    saved = played["design"].configuration.saved(found["state"], states)
    assert [part.tolist() for part in saved] == [part.tolist() for part in states]


def test_counters_count(found):
    assert found["sequences"] == 3
    low, high, later = found["cycles"]
    assert high == 0 and 500 < low < later


def test_flags_and_resets_of_the_core(found):
    assert found["malformed"] & 2
    assert found["cleared"] == [0, 0], "a reset of one cycle clears flags and counters, and the bus goes on"


def test_the_design_itself_is_the_same_with_a_bus_and_without(played):
    plain = generate(played["design"].network, multipliers=12, reloadable=True, objective="throughput")
    assert (plain.verilog, plain.images) == (played["design"].verilog, played["design"].images)
    assert "bus" not in plain.manifest and not plain.bus


def test_a_design_without_a_port_has_registers_alone(tmp_path):
    design = generate(made(3), multipliers=12, bus="axi4-lite", objective="throughput")
    assert design.manifest["bus"]["address_bits"] == 12 and design.manifest["bus"]["configuration"] == 0
    assert RegisterMap.from_manifest(design.manifest).base == 0
    assert (design.write(tmp_path / "design") / f"{TOP}.v").read_text().count(f"\nmodule {TOP} (") == 1


def test_registers_count_what_protected_memories_put_right(tmp_path):
    addresses = RegisterMap.of(None, guarded=True)
    assert [each.offset for each in addresses.registers][-2:] == [0x40, 0x44] and not RegisterMap.of(None).guarded
    at = {each.name: each.offset for each in addresses.registers}
    asks = ["corrected", "uncorrected", "corrected", "uncorrected"]
    words = []

    def host():
        for n, name in enumerate(asks):
            for step in range(4):
                ports = yield {
                    "execute": int(step == 0), "corrected": int(n == 1 and step < 3), "uncorrected": int(n > 1),
                    "asked": {"write": 0, "whole": 1, "address": at[name], "word": 0}}
                words.extend([ports["reply"]["word"]] * ports["finished"])

    simulate.Amaranths(RegisterFile(addresses, 64 * "0")).run([host()])
    assert words == [0, 0, 3, 1]
    design = generate(made(3), multipliers=12, bus="axi4-lite", objective="throughput", protection="secded")
    wrapper = (design.write(tmp_path / "design") / f"{TOP}.v").read_text()
    assert RegisterMap.from_manifest(design.manifest) == addresses
    assert "corrected" in wrapper and "uncorrected" in wrapper


def test_a_core_that_gives_nothing_any_more_hangs():
    addresses = RegisterMap.of(None, guarded=True)
    at = {each.name: each.offset for each in addresses.registers}

    def seen(**at_cycle):
        """What the watchdog says 4 + 9 cycles after a sequence has come, patience 8; ports by cycle."""
        words = []

        def host():
            for cycle in range(18):
                ports = yield {"enters": int(cycle == 0), "last_in": int(cycle == 0), "execute": int(cycle == 14),
                               "asked": {"write": 0, "whole": 1, "address": at["uncorrected"], "word": 0},
                               **{name: int(cycle in cycles) for name, cycles in at_cycle.items()}}
                words.extend([ports["reply"]["word"]] * ports["finished"])

        simulate.Amaranths(RegisterFile(addresses, 64 * "0", patience=8)).run([host()])
        return words

    assert seen() == [2]
    assert seen(offered=[8]) == [0], "it waits for whoever takes outputs"
    assert seen(offered=[3], leaves=[3], last_out=[3]) == [0], "nothing is in it"
    assert seen(offered=[12]) == [2], "it stays"
    assert seen(enters=[0, 6]) == [0]


def test_a_bus_that_is_not_known_is_refused():
    with pytest.raises(Refusal, match=r"^A bus must be one of none, axi4-lite, not 'axi'; did you mean 'axi4-lite'\?"):
        generate(made(3), bus="axi")


def test_a_changed_wrapper_is_found(played, tmp_path):
    from circulant.sim import design

    folder = Path(shutil.copytree(played["folder"], tmp_path / "copy"))
    (folder / f"{TOP}.v").write_text("module circulant_axi4lite; endmodule\n")
    with pytest.raises(Refusal, match=r"must be as it was generated"):
        design.read(folder)
