"""One record has the figures of all, in the form that is promised."""
from types import SimpleNamespace

from benchmarks import verification


def test_the_record_has_the_figures_of_all(monkeypatch):
    monkeypatch.setattr(verification.fuzz, "measure", lambda **options: {
        "networks": 3, "exact": 2, "refused": 1, "failed": 0, "files": 5, "tracebacks": 0, "hostile": {"refused": 4}})
    monkeypatch.setattr(verification.mutation, "measure", lambda designs, **options: {"designs": {
        name: {"planted": 10, "caught": 9, "equivalent": 1, "survivors": []} for name in designs}})
    monkeypatch.setattr(verification.soak, "measure", lambda **options: {"words": options["words"], "mismatches": 1})
    monkeypatch.setattr(verification, "import_module", lambda name: SimpleNamespace(
        UNITS={"queue": object}, explore=lambda unit: SimpleNamespace(states=50, broken=None)))
    monkeypatch.setattr(verification.shapes, "proofs", lambda *arguments, **options: {"Queue 9": "induction", "a": 12})
    monkeypatch.setattr(verification, "_addresses", lambda name, *others: {f"addresses of {name}: ring": "induction"})
    monkeypatch.setattr(verification.mutation, "DESIGNS", ("digits-gru",))
    monkeypatch.setattr(verification, "prove", lambda unit, **options: SimpleNamespace(depth="induction", broken=None))
    figures = verification.measure(drawn=3, hardware=1, files=5, mutants=10, designs=("digits-gru",), soaked=100)
    assert {name: figures[name] for name in ("fuzz", "hostile", "mutation", "words", "mismatches", "proofs")} == {
        "fuzz": {"networks": 3, "exact": 2, "refused": 1, "failed": 0},
        "hostile": {"files": 5, "refused": 4, "tracebacks": 0},
        "mutation": {"digits-gru": {"planted": 10, "caught": 9, "equivalent": 1}}, "words": 100, "mismatches": 1,
        "proofs": {"Queue 9": "induction", "a": 12, "queue": "induction", "addresses of digits-gru: ring": "induction"}}
    assert figures["table"]["proofs"] == "4 units and shapes, 3 by induction"
