"""A record of proofs has the units of the tests, the shapes of designs and their memories."""
from types import SimpleNamespace

from benchmarks import proofs


def test_the_record_has_units_shapes_and_memories(monkeypatch):
    monkeypatch.setattr(proofs, "import_module", lambda name: SimpleNamespace(
        UNITS={"queue": object}, explore=lambda unit: SimpleNamespace(states=50, broken=None)))
    monkeypatch.setattr(proofs.shapes, "proofs", lambda *arguments, **options: {"Queue 9": "induction", "a": 12})
    monkeypatch.setattr(proofs, "_addresses", lambda name, *others: {f"addresses of {name}: ring": "induction"})
    monkeypatch.setattr(proofs.mutation, "DESIGNS", ("digits-gru",))
    monkeypatch.setattr(proofs, "prove", lambda unit, **options: SimpleNamespace(depth="induction", broken=None))
    figures = proofs.measure()
    assert figures["proofs"] == {
        "Queue 9": "induction", "a": 12, "queue": "induction", "addresses of digits-gru: ring": "induction"}
    assert figures["table"]["proofs"] == "4 units and shapes, 3 by induction"
