"""The simulator's own program stalls both sides at random, and finds a circuit that breaks the rules of its stream."""
from dataclasses import replace
from pathlib import Path

import pytest

from circulant.sim.cosim.build import build
from circulant.sim.cosim.judge import check
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.cosim.simulate import drive, job_of
from circulant.sim.cosim.stimuli import Run
from circulant.sim.cosim.toolchain import find
from circulant.sim.cosim.verification import planned
from tests.sim.cosim.accumulator import Fault, vectors, write


def stalled(folder: Path, seed: int = 0, full: int = 0) -> str:
    """The rule that is broken, or the first word that differs; empty where all is right."""
    manifest, tools = Manifest.load(folder), find()
    played, _, _ = planned(manifest, vectors(), None)
    job = job_of(manifest, (Run("stalled", tuple(range(len(played))) * 4, seed=seed, full=full),), played, 4000)
    outcome = drive(manifest, tools, build(manifest, tools).folder, job, lambda stage, done, total: None)
    if broken := check.broken_rule(job, outcome, manifest.output):
        return broken[0]
    found = check.compare(job, outcome, manifest.output, played)
    assert found.words == 36 * 5
    undisturbed = replace(job, runs=(replace(job.runs[0], seed=0, full=0),))
    swift = drive(manifest, tools, build(manifest, tools).folder, undisturbed, lambda stage, done, total: None)
    assert outcome.cycles > (swift.cycles + full if full else 1.2 * swift.cycles), "stalls take time"
    return str(found.first or "")


@pytest.mark.parametrize(("fault", "words"), [
    (Fault.NONE, ""), (Fault.WITHDRAW, "m_axis_tvalid must stay set until m_axis_tready, but it was withdrawn"),
    (Fault.CHANGE, "m_axis_tdata and m_axis_tlast must not change while a beat waits"),
    (Fault.CORRUPT, "sequence "), (Fault.SHY, "A beat must move at least every 4000 cycles")],
    ids=lambda value: value.name if isinstance(value, Fault) else "")
def test_stalls_at_random_find_what_breaks_a_rule(tmp_path: Path, fault: Fault, words: str) -> None:
    found = stalled(write(tmp_path / "design", fault), 4 if fault == Fault.SHY else 3)
    assert found.startswith(words) and bool(found) == bool(words)


@pytest.mark.parametrize(("fault", "full", "words"), [
    (Fault.NONE, 50, ""), (Fault.NONE, 5000, ""), (Fault.CORRUPT, 50, "sequence "),
    (Fault.WITHDRAW, 50, "m_axis_tvalid must stay set until m_axis_tready, but it was withdrawn"),
    (Fault.HANG, 50, "A beat must move at least every 4000 cycles")],
    ids=lambda value: value.name if isinstance(value, Fault) else "")
def test_a_sink_that_waits_until_the_circuit_is_full_finds_what_breaks_then(
        tmp_path: Path, fault: Fault, full: int, words: str) -> None:
    """Also where it waits longer than a circuit may that could go on."""
    found = stalled(write(tmp_path / "design", fault), full=full)
    assert found.startswith(words) and bool(found) == bool(words)
