"""What of a design is synthesized: its text without notes, and the hash under which a mapping is kept."""
import json

import pytest

from circulant.boards.asic.source import bare, cells, circuit
from tests.boards.asic import tiny

TEXT = '''// Top (hw/top.py): what it is.
(* src = "hw/top.py:130" *)
module top (
  input clk,  // clock
  output o
);
  /* two
     lines */
  (* src = "hw/a.py:3", ram_style = "block" *) reg [1:0] m [0:3];

  initial $readmemh("a//b.hex", m);
endmodule
'''


@pytest.fixture
def design(tmp_path):
    (tmp_path / "top.v").write_text(TEXT)
    (tmp_path / "m.hex").write_text("1\n2\n")
    return tmp_path, {"top": "top", "verilog": ["top.v"], "images": ["m.hex"]}


def test_notes_places_and_empty_lines_are_left_out():
    assert bare(TEXT).splitlines() == [
        "module top (", "input clk,", "output o", ");", '(* ram_style = "block" *) reg [1:0] m [0:3];',
        'initial $readmemh("a//b.hex", m);', "endmodule"]
    assert bare('(* keep, src = "a:1" *) wire w;') == "(* keep *) wire w;\n"


def test_a_circuit_is_the_same_after_changes_of_notes_and_lines(design):
    folder, described = design
    before = circuit(folder, described)
    (folder / "top.v").write_text("// Other.\n" + TEXT.replace("top.py:130", "top.py:131").replace("clock", "it runs"))
    assert circuit(folder, described) == before


@pytest.mark.parametrize(("name", "old", "new"), [("top.v", "[1:0]", "[2:0]"), ("top.v", '"block"', '"distributed"'),
                                                  ("m.hex", "2", "3")])
def test_another_circuit_has_another_hash(design, name, old, new):
    folder, described = design
    before = circuit(folder, described)
    (folder / name).write_text((folder / name).read_text().replace(old, new))
    assert circuit(folder, described) != before


def test_a_real_design_has_no_notes_left(tmp_path):
    folder, _ = tiny.design(tmp_path)
    described = json.loads((folder / "manifest.json").read_text())
    text = bare((folder / "top.v").read_text())
    assert "//" not in text and "src =" not in text and "hw/" not in text
    assert len(circuit(folder, described)) == 64


def test_files_of_a_library(tmp_path):
    found = tiny.read(tmp_path)
    before = cells(found)
    (tmp_path / "tiny.lib").write_text(tiny.liberty() + "\n")
    assert cells(found) != before
