"""Figures of Yosys of some families beside kept ones of others."""
import json

import pytest

from benchmarks import logic

NEW, OLD = {"dsps": 3}, {"dsps": 2}


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """Measures a family of one design beside kept figures; its rows by design."""
    monkeypatch.setattr(logic, "designs", lambda: [(1, "one", lambda: "design")])
    monkeypatch.setattr(logic, "_row", lambda key, title, design, families: {
        "design": title, "resources": {"bits": 7}, "fitted": list(families), "found": dict.fromkeys(families, NEW)})
    monkeypatch.setattr(logic, "_line", lambda row, family: "")

    def run(*rows, **options):
        (tmp_path / "logic.json").write_text(json.dumps({"designs": rows}))
        made = logic.measure(("ecp5",), kept=tmp_path / "logic.json", **options)
        return {row["design"]: row for row in made["designs"]}
    return run


def row(title, bits, **found):
    return {"design": title, "resources": {"bits": bits}, "fitted": list(found), "found": found}


def test_figures_of_other_families_stay_beside_those_that_are_measured_anew(measured):
    rows = measured(row("one", 7, ecp5=OLD, xcu=OLD), row("two", 7, ice40=OLD), row("three", 7, ecp5=OLD))
    assert rows["one"]["found"] == {"ecp5": NEW, "xcu": OLD} and sorted(rows["one"]["fitted"]) == ["ecp5", "xcu"]
    assert rows["two"]["found"] == {"ice40": OLD} and "three" not in rows


def test_those_of_other_designs_stay_if_only_one_is_measured(measured):
    rows = measured(row("one", 6, ecp5=OLD), row("two", 7, ecp5=OLD), only=("1",))
    assert rows["one"] == row("one", 7, ecp5=NEW) and rows["two"]["found"] == {"ecp5": OLD}
    assert measured(row("one", 6, ecp5=OLD), only=("2",))["one"]["found"] == {"ecp5": OLD}


def test_figures_of_another_circuit_are_left_out(measured):
    assert measured(row("one", 6, xcu=OLD))["one"]["found"] == {"ecp5": NEW}
