"""A design is read as it was generated, or refused."""
import os
import re
from functools import partial

import pytest

from circulant.sim import artifact, design
from circulant.sim.refusal import Refusal
from tests.refused import refused
from tests.sim.cosim.accumulator import write


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path / "design")


refusal = partial(refused, design.read)


def test_its_hash_covers_every_file(folder, tmp_path):
    body = design.read(folder)
    assert set(body["files"]) == {"accumulator.v", "constants.hex", "options.hex"}
    other = write(tmp_path / "other")
    assert design.read(other)["hash"] == body["hash"]
    (other / "constants.hex").write_text("0001\n")
    assert refusal(other).startswith(f"{other / 'constants.hex'} must be as it was generated (SHA-256 ")


@pytest.mark.parametrize("name", ["accumulator.v", "options.hex"])
@pytest.mark.parametrize(("damage", "rule"), [
    (lambda path: path.write_bytes(b""), "must be as it was generated"),
    (lambda path: path.write_bytes(path.read_bytes() + b" "), "must be as it was generated"),
    (lambda path: path.unlink(), "must exist, since"),
    (lambda path: (path.unlink(), path.mkdir()), r"but it is not \(it is a folder\)"),
    (lambda path: (path.unlink(), os.mkfifo(path)), r"but it is not \(it is a pipe\)"),
    (lambda path: (path.unlink(), path.symlink_to("/dev/zero")), r"but it is not \(it is a device\)"),
], ids=["empty", "longer", "missing", "folder", "pipe", "device"])
def test_a_file_that_was_changed_is_refused(folder, name, damage, rule):
    damage(folder / name)
    assert re.search(f"^{re.escape(str(folder / name))} .*{rule}.*; generate the design again$", refusal(folder))


@pytest.mark.parametrize(("field", "value", "rule"), [
    ("files", {}, "field 'files' must have the hash of each file of 'verilog' and 'images', and no other"),
    ("files", {"accumulator.v": "x"}, "field 'files.accumulator.v' must be a SHA-256 of 64 hexadecimal digits"),
    ("verilog", ["/etc/passwd"], r"field 'verilog\[0\]' must be a file, named without its folder, not '/etc/passwd'"),
    ("verilog", [".."], r"field 'verilog\[0\]' must be a file, named without its folder"),
    ("verilog", [], "field 'verilog' must be a list of at least 1 elements"),
    ("top", "x;`include \"y\"", "field 'top' must be an identifier of Verilog"),
    ("clock", 3, "field 'clock' must be an identifier of Verilog, not 3"),
    ("streams", 0, "field 'streams' must be an integer from 1 to 65536, not 0"),
    ("streams", True, "field 'streams' must be an integer from 1 to 65536, not True"),
    ("max_steps", "10", "field 'max_steps' must be null or an integer"),
    ("layers", [{"cycles": "9"}], r"field 'layers\[0\]\.cycles' must be a number from 0 to 1e\+12, not '9'"),
    ("layers", [{"cycles": 1e300}], r"field 'layers\[0\]\.cycles' must be a number from 0 to 1e\+12, not 1e\+300"),
    ("layers", [{"cycles": 9, "limit": None}], r"field 'layers\[0\]\.limit' must be a text"),
    ("ports", None, "field 'ports' must be a list, not None"),
    ("ports", [None], r"field 'ports\[0\]' must be an object, not None"),
    ("ports", [{}], r"field 'ports\[0\]\.name' must be there, but it is missing"),
    ("input", None, "field 'input' must be an object, not None"),
    ("network", "abc", "field 'network' must be a SHA-256"),
])
def test_a_manifest_of_nonsense_is_refused(folder, field, value, rule):
    body = artifact.read_json(folder / "manifest.json", design.KIND, design.VERSION) | {field: value}
    del body["hash"]
    artifact.write_json(folder / "manifest.json", design.KIND, design.VERSION, body)
    assert re.search(f"^{re.escape(str(folder / 'manifest.json'))}: {rule}", refusal(folder))


PORTS = [{"name": name, "direction": direction, "bits": bits} for name, direction, bits in (
    ("clk", "in", 1), ("rst", "in", 1), ("s_tdata", "in", 32), ("s_tvalid", "in", 1), ("s_tready", "out", 1),
    ("s_tlast", "in", 1), ("m_tdata", "out", 8), ("m_tvalid", "out", 1), ("m_tready", "in", 1), ("m_tlast", "out", 1))]


def body_of(ports):
    return {"clock": "clk", "reset": "rst", "ports": ports,
            "input": {"prefix": "s", "elements_per_beat": 2, "container_bits": 16},
            "output": {"prefix": "m", "elements_per_beat": 1, "container_bits": 8}}


def test_ports_are_those_of_the_streams():
    extra = {"name": "overflow", "direction": "out", "bits": 1}
    assert design.ports(body_of([*PORTS, extra])) == {port["name"]: port for port in [*PORTS, extra]}
    for ports, named in (([], r"clk \(in, 1"), (PORTS[1:], r"clk \(in, 1"), (PORTS[:-1], r"m_tlast \(out, 1"),
                         ([*PORTS, PORTS[2] | {"bits": 31}], r"s_tdata \(in, 32"),
                         ([*PORTS, PORTS[4] | {"direction": "in"}], r"s_tready \(out, 1")):
        with pytest.raises(Refusal, match=rf"^The manifest of a design must name its port {named} bits\), but it does"):
            design.ports(body_of(ports))
    with pytest.raises(Refusal, match=r"must name its port clk"):
        design.ports({name: value for name, value in body_of([]).items() if name != "ports"})
