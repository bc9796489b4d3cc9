"""Liberty text: attributes, groups, values over several lines, and what is refused."""
import pytest

from circulant.boards.asic.cells.liberty import numbers, parse
from circulant.sim.refusal import Refusal

TEXT = '''library ("demo") { /* a comment { */
  time_unit : "1ns";
  capacitive_load_unit (1, pf);
  cell (AND2) { area : 3.5
    dont_use : true;
    pin (Y) { direction : output; function : "A B";
      internal_power () {
        rise_power (p) { values ("1, 2", \\
          "3, 4"); }
      }
    }
  }
}
'''


def test_groups_and_attributes():
    library = parse(TEXT, "demo.lib")
    (cell,) = library.all("cell")
    assert (library.name, library.text("time_unit"), library.attributes["capacitive_load_unit"]) == (
        "demo", "1ns", ["1", "pf"])
    assert (cell.name, cell.number("area"), cell.text("dont_use")) == ("AND2", 3.5, "true")
    power = cell.all("pin")[0].all("internal_power")[0].all("rise_power")[0]
    assert numbers(power.attributes["values"]).tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(("text", "message"), [
    (TEXT[:-3], "must close each brace that it opens, but demo.lib breaks off"),
    ("", "must hold one library, but demo.lib holds none"),
    ("a = 3;", "must hold attributes and groups, but demo.lib has 'a' before '='"),
    (TEXT.replace("3.5", '"large"'), "attribute area of cell AND2 in a liberty file must be a number, not 'large'"),
])
def test_other_text_is_refused(text, message):
    with pytest.raises(Refusal, match=message):
        parse(text, "demo.lib").all("cell")[0].number("area")
