"""The runner of Icarus Verilog on a small circuit: what it sees, what it refuses, and that it ends."""
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from circulant.sim import artifact
from circulant.sim.cosim import SimulationError, icarus
from circulant.sim.refusal import Refusal, ToolError
from circulant.sim.vectors import Vectors

NETWORK = "0123456789abcdef" * 4
STEPS = 3
CONSTANTS = (5, -7)

# A register between two streams, which adds a constant to each of two elements.
CIRCUIT = """\
module adder (
  input clk, input rst, input [31:0] s_axis_tdata, input s_axis_tvalid, output s_axis_tready, input s_axis_tlast,
  output [31:0] m_axis_tdata, output m_axis_tvalid, input m_axis_tready, output m_axis_tlast
);
  reg [15:0] constants [0:1];
  initial $readmemh("constants.hex", constants);
  reg [31:0] held;
  reg full, ends;
  assign s_axis_tready = !full | m_axis_tready;
  assign m_axis_tvalid = full;
  assign m_axis_tdata = held;
  assign m_axis_tlast = ends;
  always @(posedge clk) begin
    if (s_axis_tready) begin
      held <= {s_axis_tdata[31:16] + constants[1], s_axis_tdata[15:0] + constants[0]};
      ends <= s_axis_tlast;
      full <= s_axis_tvalid;
    end
    if (rst) full <= 0;
  end
endmodule
"""

needed = pytest.mark.skipif(not icarus.available(), reason="needs Icarus Verilog: apt-get install iverilog")


def write(folder: Path, *change: str, constants: tuple[str, ...] = ("0005", "fff9")) -> Path:
    """The design, with a piece of its text in another's place."""
    def port(prefix: str) -> dict[str, Any]:
        return {"prefix": prefix, "elements_per_beat": 2, "container_bits": 16, "format": {"width": 16, "frac": 4},
                "elements": 2, "beats": 1}

    folder.mkdir()
    text = CIRCUIT
    if change:
        assert change[0] in text
        text = text.replace(*change)
    (folder / "adder.v").write_text(text)
    (folder / "constants.hex").write_text("\n".join(constants) + "\n")
    artifact.write_json(folder / "manifest.json", "circulant-design", 1, {
        "name": "adder", "network": NETWORK, "top": "adder", "verilog": ["adder.v"], "images": ["constants.hex"],
        "clock": "clk", "reset": "rst", "streams": 1, "max_steps": None, "layers": [],
        "input": port("s_axis"), "output": port("m_axis") | {"per": "step"}})
    return folder


def vectors() -> Vectors:
    inputs = np.random.default_rng(7).integers(-2048, 2048, (6, STEPS, 2))
    return Vectors(inputs, inputs + CONSTANTS, NETWORK)


@needed
def test_a_right_circuit_passes(tmp_path: Path) -> None:
    folder = write(tmp_path / "design")
    found = icarus.run(folder, vectors())
    assert (found.words, found.mismatches, found.first) == ((6 + 2 + 2) * STEPS * 2, 0, None)
    assert icarus.run(folder, vectors(), stalls=False).words == 6 * STEPS * 2
    assert sorted(path.name for path in folder.iterdir()) == ["adder.v", "constants.hex", "manifest.json"]


@needed
def test_a_wrong_word_is_named(tmp_path: Path) -> None:
    found = icarus.run(write(tmp_path / "design", constants=("0005", "fff8")), vectors())
    assert found.mismatches == found.words // 2
    assert str(found.first).startswith("sequence 0, step 0, word 1: expected ")
    assert str(found.first).endswith("(back-to-back)")


@needed
@pytest.mark.parametrize(("old", "new", "sentence"), [
    ("if (rst) full <= 0;", "", r"^s_axis_tready must be 0 or 1 after reset, but it was unknown in cycle 2: "),
    ("m_axis_tvalid = full", "m_axis_tvalid = full ^ (held[0] & !held[0])",
     r"^m_axis_tvalid must be 0 or 1 after reset, but it was unknown in cycle \d+: "),
    ("tdata[31:16] + constants[1]", "tdata[31:16] + constants[1] + ends", r"^m_axis_tdata and m_axis_tlast of a beat "
     r"must be 0 or 1 in every bit, but one was unknown in cycle \d+: output beat 0 of sequence 0"),
    ("    if (s_axis_tready) begin", "    if (1) begin", r"^m_axis_tvalid must stay set until m_axis_tready|must not "
                                                         r"change while a beat waits.*\(stalled\)"),
    ("s_axis_tready = !full | m_axis_tready", "s_axis_tready = 0",
     r"^A beat must move at least every 500 cycles, but none had"),
    ("m_axis_tlast = ends", "m_axis_tlast = 0", r"^m_axis_tlast must be set on the last of the 3 output beats"),
])
def test_a_circuit_that_breaks_a_rule_is_named(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    with pytest.raises(SimulationError, match=sentence):
        icarus.run(write(tmp_path / "design", old, new), vectors(), patience=500)


@needed
def test_a_process_that_only_reads_constants_never_runs_here(tmp_path: Path) -> None:
    folder = write(tmp_path / "design", "assign s_axis_tready = !full | m_axis_tready;",
                   "reg on; always @* on = 1; assign s_axis_tready = (!full | m_axis_tready) & on;")
    with pytest.raises(SimulationError, match=r"^s_axis_tready must be 0 or 1 after reset"):
        icarus.run(folder, vectors())


@needed
def test_verilog_that_does_not_compile_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"must compile with Icarus Verilog, but it does not \(adder.v:\d+: .*\); gen"):
        icarus.run(write(tmp_path / "design", "endmodule", "endmodul"), vectors())


@needed
def test_a_simulation_that_stands_still_ends(tmp_path: Path) -> None:
    folder = write(tmp_path / "design", "m_axis_tlast = ends;",
                   "m_axis_tlast = ends; reg turning; initial begin turning = 0; forever #0 turning = !turning; end")
    with pytest.raises(ToolError, match=r"^vvp must end within 1 s, but it was still at work on simulating .*adder\.v "
                                        r"and was stopped; "):
        icarus.run(folder, vectors(), seconds=1)


def test_without_icarus_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert not icarus.available()
    with pytest.raises(Refusal, match=r"^A simulation with unknown values needs Icarus Verilog, but PATH has no "
                                      r"iverilog and no vvp; install it \(on Debian: apt-get install iverilog\)$"):
        icarus.run(write(tmp_path / "design"), vectors())
