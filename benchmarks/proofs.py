"""Proofs of the stream units in every shape of the designs, and of the memories of designs, in one record."""
import hashlib
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from benchmarks import mutation
from benchmarks.designs import DESIGNS, network
from benchmarks.formal import shapes
from benchmarks.formal.addresses import LOADED, written
from benchmarks.formal.check import Proof, prove
from benchmarks.resume import PROOFS, Record
from circulant.hw import generate
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.document import Document

__all__ = ["measure"]


def measure(note: Callable[[str], None] = lambda text: None, *, seconds: float = 60.0) -> Document:
    """By stream unit and shape how it was proved: "induction" where every state that can be reached holds its
    properties, under every input, else the cycles from the start that were looked at. Small ones are proved once more
    by a program of our own, which visits each state. Behind them the memories of the designs that mutants are planted
    in.

    Parameters:
        seconds: of ABC for a shape. What it found is kept in `PROOFS`, so that a run that is interrupted goes on.

    Raises:
        AssertionError: when a property breaks.
    """
    explore = import_module("tests.hw.prove").explore  # The units under proof are those of the tests.
    record, kept = Record(PROOFS, Proof), Record[dict[str, bool]](PROOFS, dict)
    found = shapes.proofs(shapes.recorded(), seconds=seconds, record=record, note=note)
    for name in mutation.DESIGNS:
        found |= _addresses(name, kept, note)
    for name, make in import_module("tests.hw.test_stream_proofs").UNITS.items():
        proof = explore(make())
        assert proof.broken is None, f"{name}: {proof.broken}"
        found[name] = "induction"
        note(f"{name}: each of {proof.states:,} states")
    for name, make in import_module("tests.hw.test_bidirectional_proofs").UNITS.items():
        proved = prove(make(), seconds=seconds, record=record)
        assert proved.broken is None, f"{name}: {proved.broken}"
        found[name] = proved.depth
        note(f"{name}: {proved.depth}")
    table = {"proofs": f"{len(found)} units and shapes, {list(found.values()).count('induction')} by induction"}
    return {"benchmark": "proofs", "table": table, "proofs": found}


def _addresses(name: str, record: Record[dict[str, bool]], note: Callable[[str], None]) -> dict[str, str | int]:
    """By memory of a design "induction" where no word beyond the last one is written, else 0: see
    `benchmarks.formal.addresses`."""
    with tempfile.TemporaryDirectory(prefix="circulant-addresses-") as temporary:
        shape = DESIGNS[name]
        manifest = Manifest.load(generate(network(name), **shape.options, objective="throughput").write(
            Path(temporary) / "design"))
        text = "".join(path.read_text() for path in manifest.verilog)
        key = hashlib.sha256(f"addresses {LOADED} {text}".encode()).hexdigest()
        found = record.get(key, lambda: dict(written(manifest, note=note)))
    return {f"addresses of {name}: {memory}": "induction" if proved else 0 for memory, proved in found.items()}
