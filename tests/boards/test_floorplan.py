import json
from xml.etree import ElementTree

from circulant.boards.floorplan import KINDS, Placed, picture, placed


def test_cells_are_found_where_nextpnr_says(tmp_path):
    cells = {"a": {"type": "TRELLIS_COMB", "attributes": {"NEXTPNR_BEL": "X3/Y4/SLICEA.LUT0"}},
             "b": {"type": "MULT18X18D", "attributes": {"NEXTPNR_BEL": "X10/Y2/MULT18_0"}},
             "c": {"type": "LUT4", "attributes": {}}}
    file = tmp_path / "placed.json"
    file.write_text(json.dumps({"modules": {"top": {"cells": cells}}}))
    assert placed(file) == [Placed(3, 4, "logic"), Placed(10, 2, "multipliers")]


def test_a_picture_has_a_square_for_each_tile():
    text = picture([Placed(0, 0, "logic"), Placed(0, 0, "logic"), Placed(2, 5, "block RAM")], "a <design>")
    squares = [each for each in ElementTree.fromstring(text).iter() if each.get("fill-opacity")]
    assert [(each.get("x"), each.get("y"), each.get("fill")) for each in squares] == [
        ("0", "0", KINDS["logic"][0]), ("16", "40", KINDS["block RAM"][0])]


def test_labels_of_the_legend_do_not_overlap():
    texts = [each for each in ElementTree.fromstring(picture([Placed(0, 0, "logic")], "")).iter()
             if each.text in KINDS]
    lefts = [int(each.attrib["x"]) for each in texts]
    assert len(texts) == len(KINDS)
    assert all(right - left > 6 * len(each.text) for each, left, right in zip(texts, lefts, lefts[1:], strict=False))
