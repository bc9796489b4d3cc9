"""Integration kits: what the files say is what the design is, and the test bench tells right from wrong."""
import json
import re
import shutil
import subprocess
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from circulant.hw import generate
from circulant.kit import write_kit
from circulant.kit.kit import FILES
from circulant.sim.cosim import icarus
from circulant.sim.cosim.toolchain import find
from circulant.sim.kinds.flatten import FloatFlatten
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real import float_model
from circulant.sim.refusal import Refusal
from circulant.sim.shape.window import Window
from circulant.sim.vectors import Vectors
from tests.hw import golden
from tests.random_networks import Random
from tests.sim import samples

IPXACT = {"x": "http://www.accellera.org/XMLSchema/IPXACT/1685-2014"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A reloadable core with two beats a vector, its network, test vectors, and kit."""
    network = golden.network(4, 6, 5, outputs=3, returns="sequence", activation_bits=9, weight_bits=8)
    folder = generate(network, multipliers=16, reloadable=True, objective="throughput").write(
        tmp_path_factory.mktemp("kit") / "design")
    vectors = network.vectors(np.random.default_rng(3).normal(0, 1, (5, 4, 5)))
    write_kit(folder, vectors, clock_mhz=125)
    return folder, network, vectors


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made[0], tmp_path / "design")


def manifest(folder):
    return json.loads((folder / "manifest.json").read_text())


def text(folder, name):
    return (folder / name).read_text("utf-8")


def test_kit_is_beside_the_design(folder):
    assert {*FILES, "tb_input.hex", "tb_expected.hex", "top.v"} <= {path.name for path in folder.iterdir()}


def test_ports_are_those_of_the_verilog(folder):
    verilog = text(folder, "top.v")
    top = verilog[verilog.index("module circulant_top ("):]
    found = re.findall(r"^  (in|out)put (?:reg )?(?:\[(\d+):0\] )?(\w+)", top[:top.index(");")], re.M)
    assert [(name, direction, int(high or 0) + 1) for direction, high, name in found] == [
        (port["name"], port["direction"], port["bits"]) for port in manifest(folder)["ports"]]
    assert {"cfg_wdata", "malformed"} <= {name for _, _, name in found}


def test_ip_xact_has_the_ports_files_and_streams(folder):
    root, body = ElementTree.fromstring(text(folder, "component.xml")), manifest(folder)
    ports = [(port.findtext("x:name", None, IPXACT), port.findtext(".//x:direction", None, IPXACT),
              int(port.findtext(".//x:left", "0", IPXACT)) + 1) for port in root.iterfind(".//x:port", IPXACT)]
    assert ports == [(port["name"], port["direction"], port["bits"]) for port in body["ports"]]
    files = [name.text for name in root.iterfind(".//x:file/x:name", IPXACT)]
    assert files == [*body["verilog"], *body["images"]]
    mapped = [name.text for name in root.iterfind(".//x:physicalPort/x:name", IPXACT)]
    assert mapped == [f"{side}_axis_{signal}" for side in "sm" for signal in ("tdata", "tvalid", "tready", "tlast")] + [
        "clk", "rst"]


@pytest.mark.parametrize("name", ["circulant_top.v.txt", "circulant_top.vhd.txt"])
def test_instance_connects_each_port_once(folder, name):
    connected = re.findall(r"^    \.(\w+)\(|^    (\w+) => ", text(folder, name), re.M)
    assert [a or b for a, b in connected] == [port["name"] for port in manifest(folder)["ports"]]


def test_core_of_fusesoc_lists_the_files(folder):
    body = manifest(folder)
    listed = re.findall(r"^      - ([\w.]+):", text(folder, "circulant_top.core"), re.M)
    assert listed == [*body["verilog"], *body["images"], "tb_circulant_top.sv", "tb_input.hex", "tb_expected.hex"]


def test_constraints_have_the_clock(folder):
    assert "-period 8.000 " in text(folder, "circulant_top.xdc")
    assert "-period 8.000 " in text(folder, "circulant_top.sdc")
    assert 'FREQUENCY PORT "clk" 125 MHZ;' in text(folder, "circulant_top.lpf")


def test_readme_works_an_example(folder, made):
    readme, body = text(folder, "README.md"), manifest(folder)
    first = int(made[2].inputs[0, 0, 0])
    assert f"begins with the integer {first}, which is {first / 2 ** body['input']['format']['frac']}." in readme
    word = re.search(r"\| 0 \| `0x([0-9a-f]+)` \|", readme)[1]
    assert int(word[-4:], 16) == first % (1 << 16), "value 0 lies in the low bits"
    assert all(f"| `{port['name']}` | {port['direction']} | {port['bits']} |" in readme for port in body["ports"])


def bench(folder, *options):
    compiled = subprocess.run(["iverilog", "-g2012", "-o", "bench", "tb_circulant_top.sv", "top.v"], cwd=folder,
                              capture_output=True, text=True, timeout=120)
    assert compiled.returncode == 0, compiled.stderr
    return subprocess.run(["vvp", "-n", "bench", *options], cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.mark.skipif(not icarus.available(), reason="needs Icarus Verilog: apt-get install iverilog")
class TestBench:
    @pytest.mark.parametrize("options", [(), ("+nostalls",)])
    def test_right_design_passes(self, folder, options):
        found = bench(folder, *options)
        assert found.returncode == 0
        beats = len(text(folder, "tb_expected.hex").split())
        assert f"PASS: {beats} beats equal the golden model's" in found.stdout
        assert 1 <= found.stdout.count(f" of {beats} beats, ") <= 20, "a long simulation shows how far it is"

    def test_wrong_beat_fails(self, folder):
        lines = text(folder, "tb_expected.hex").split()
        lines[-3] = f"{int(lines[-3], 16) ^ 1:0{len(lines[-3])}x}"
        (folder / "tb_expected.hex").write_text("\n".join(lines) + "\n")
        found = bench(folder)
        assert found.returncode != 0
        assert f"FAIL: beat {len(lines) - 3} is" in found.stdout + found.stderr

    def test_misplaced_tlast_fails(self, folder):
        lines = text(folder, "tb_input.hex").split()
        lines[0] = "1" + lines[0][1:]
        (folder / "tb_input.hex").write_text("\n".join(lines) + "\n")
        found = bench(folder)
        assert found.returncode != 0
        assert "FAIL: malformed is set in cycle" in found.stdout + found.stderr


def interleaved():
    network = golden.network(4, 6, 5, outputs=3, activation_bits=9, weight_bits=8)
    return network, {"streams": 3}, np.random.default_rng(4).normal(0, 1, (6, 4, 5))


def image():
    r = Random(5)
    layers = [r.conv("conv", 2, 4, k=2, grid=(5, 4), window=Window((3, 3), padding=(1, 1)), relu=True),
              FloatFlatten("flatten", 4, (5, 4), "pixels"), r.linear("out", 80, 3, 4)]
    return r.network(layers, 2, shape=(2, 5, 4)), {}, np.random.default_rng(6).normal(0, 1, (3, 2, 5, 4))


def both_ways():
    model = float_model.Model.chain("both", 5, True, (samples.bidirectional("gru", 5, 6, k=2),))
    return quantize(model, samples.data(model), activation_bits=9, weight_bits=8), {"max_steps": 9}, samples.data(
        model, 4)


@pytest.mark.skipif(not icarus.available(), reason="needs Icarus Verilog: apt-get install iverilog")
@pytest.mark.parametrize("make", [interleaved, image, both_ways])
def test_bench_plays_each_kind_of_stream(make, tmp_path):
    network, options, x = make()
    folder = generate(network, multipliers=40, **options, objective="throughput").write(tmp_path / "design")
    write_kit(folder, network.vectors(x))
    found = bench(folder)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "equal the golden model's" in found.stdout


def test_name_of_a_network_stays_in_its_line(made, tmp_path):
    network = replace(made[1], name="a\n`include \"b\"\n<c>")
    folder = generate(network, multipliers=16, objective="throughput").write(tmp_path / "named")
    write_kit(folder, network.vectors(np.zeros((1, 4, 5))))
    assert not re.search(r"^\s*`include", text(folder, "tb_circulant_top.sv"), re.M)
    root = ElementTree.fromstring(text(folder, "component.xml"))
    assert root.findtext("x:name", None, IPXACT) == "a__include__b___c_"
    core = text(folder, "circulant_top.core")
    assert '\ndescription: "Core of the block-circulant network a `include \\"b\\" ' in core


def test_vectors_of_another_network(made, folder):
    other = golden.network(4, 6, 5, outputs=3, returns="sequence", seed=1, activation_bits=9, weight_bits=8)
    with pytest.raises(Refusal, match=r"The vectors must be those of the network that .*manifest\.json was made from"):
        write_kit(folder, other.vectors(np.zeros((1, 4, 5))))


def test_speed_is_that_of_the_manifest(folder):
    body = manifest(folder)
    for name in ("latency_spaced", "latency_contiguous"):
        assert f"{body[name]:,} | {body[name] / 125:.3g} |" in text(folder, "README.md")


@pytest.mark.parametrize("clock", [0, -5, float("nan"), 1e9])
def test_wrong_clock(made, folder, clock):
    with pytest.raises(Refusal, match=r"must be above 0 and below 10,000 MHz, not .*; give it as clock_mhz"):
        write_kit(folder, made[2], clock_mhz=clock)


def test_no_vectors(made, folder):
    with pytest.raises(Refusal, match="must play at least one sequence"):
        write_kit(folder, Vectors(made[2].inputs[:0], made[2].outputs[:0], made[2].network))


RULES_BENCH = """\
module bench;
  reg clk = 0, rst = 1, valid = 0, ready = 0, last = 0;
  reg [7:0] data = 0;
  axi_stream_rules #(.BITS(8), .NAME("port")) rules (.clk(clk), .rst(rst), .tdata(data), .tvalid(valid),
    .tready(ready), .tlast(last));
  always #5 clk = !clk;
  initial begin
    @(negedge clk) rst = 1; @(negedge clk) rst = 0; @(negedge clk) valid = 0;
    @(negedge clk) valid = 1; @(negedge clk) @STEP@ @(negedge clk) @(negedge clk) $finish;
  end
endmodule
"""


@pytest.mark.skipif(not icarus.available(), reason="Icarus Verilog is not installed")
@pytest.mark.parametrize(("step", "said"), [
    ("ready = 1;", ""), ("valid = 0;", "an offer must stay until it is taken"),
    ("data = 5;", "an offer must not change"), ("last = 1;", "an offer must not change"),
    ("ready = 1'bx;", "tvalid and tready must be 0 or 1"), ("data = 8'bx;", "every bit of an offer must be 0 or 1")])
def test_assertions_of_the_stream_tell_a_broken_rule(folder, step, said):
    (folder / "bench.sv").write_text(RULES_BENCH.replace("@STEP@", step))
    subprocess.run(["iverilog", "-g2012", "-s", "bench", "-o", "rules", "bench.sv", "axi_stream_rules.sv"], cwd=folder,
                   check=True)
    shown = subprocess.run(["vvp", "-n", "rules"], cwd=folder, check=True, capture_output=True, text=True).stdout
    assert (said in shown if said else "port:" not in shown), shown


def test_assertions_are_bound_to_both_ports(folder):
    tools = find()
    shown = subprocess.run(
        ["verilator", "--lint-only", "--assert", "-Wno-fatal", "--top-module", "circulant_top", "top.v",
         "axi_stream_rules.sv"], cwd=folder, capture_output=True, text=True, env=tools.environment())
    assert shown.returncode == 0, shown.stderr
    assert re.findall(r"^bind circulant_top .* (\w+_rules)", text(folder, "axi_stream_rules.sv"), re.M) == [
        "s_axis_rules", "m_axis_rules"]
