import json
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from circulant.sim.cosim import SimulationError, Verification, verify
from circulant.sim.cosim.job import Played
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.cosim.simulate import job_of
from circulant.sim.cosim.verification import planned
from circulant.sim.refusal import Refusal, ToolError
from circulant.sim.vectors import Vectors
from tests.sim.cosim.accumulator import (
    CONSTANTS,
    LATENCY,
    NETWORK,
    STEP,
    STEPS,
    Fault,
    describe,
    vectors,
    write,
    write_image,
)

PATIENCE = 2000


def run(folder: Path, per: str = "sequence", **options: Any) -> Verification:
    return verify(folder, vectors(per=per), patience=PATIENCE, **options)


@pytest.mark.parametrize("per", ["sequence", "step"])
def test_a_right_circuit_passes_with_the_cycles_that_it_takes(tmp_path: Path, per: str) -> None:
    result = run(write(tmp_path / "design", per=per), per)
    assert (result.mismatches, result.first) == (0, None)
    assert result.sequences == 9
    assert result.words == 9 * 5 * (STEPS if per == "step" else 1)
    assert result.words_compared > 3 * result.words, "stalled and interrupted runs have to be compared as well"
    output = 2
    step = STEP + (output if per == "step" else 0)
    assert result.cycles_per_step == step
    assert result.cycles_per_sequence == (STEPS * step if per == "step" else STEPS * step + output)
    assert result.latency_spaced == result.latency_contiguous == LATENCY, "it does one sample after the other"
    assert re.fullmatch(r"Verilator \d+\.\d+(\.\d+)?", result.simulator)
    assert json.loads(json.dumps(result.as_json()))["mismatches"] == 0


@pytest.mark.parametrize(("fault", "message"), [
    (Fault.DROP, r"m_axis_tlast must be set on the last of the 2 output beats .*sequence 2 has it set on beat 0 "
                 r"\(back-to-back\); of the 40 words that came 30 differ, first sequence 2, step 3, word 0"),
    (Fault.UNENDED, r"m_axis_tlast must be set on the last .*sequence 2 has it clear on beat 1 \(back-to-back\)"),
    (Fault.EARLY, r"m_axis_tlast must be set on the last .*sequence 2 has it set on beat 0 \(back-to-back\)"),
    (Fault.EXTRA, r"No output beat may come after those of the last sequence, but \d+ more came \(back-to-back\)$"),
    (Fault.HANG, r"A beat must move at least every 2000 cycles, but none had by cycle \d+: output beat 0 of sequence 2 "
                 r"is missing; 24 of 108 input beats were taken \(back-to-back\)$"),
    (Fault.PADDING, r"filled up with zeros, but sequence 2 has 1 in element 5 \(back-to-back\)$"),
    (Fault.WITHDRAW, r"m_axis_tvalid must stay set until m_axis_tready, but it was withdrawn .*sequence 0 .*\(stalled"),
    (Fault.CHANGE, r"m_axis_tdata and m_axis_tlast must not change while .* output beat 0 of sequence 0 .*\(stalled"),
    (Fault.SHY, r"A beat must move .*\(stalled: idle none, pause until valid\)$"),
    (Fault.LOUD, r"m_axis_tvalid must be clear during reset, .*\(after reset"),
    (Fault.DEAF, r"A beat must move .* output beat 0 of sequence 0 is missing; 0 of 108 input beats"),
    (Fault.ENDLESS, r"^No output beat may come after those of the last sequence, but 1 more came \(back-to-back\)"),
    (Fault.GREEDY, r"more came \(back-to-back\); of the \d+ words that came \d+ differ, first sequence"),
], ids=lambda value: value.name if isinstance(value, Fault) else "")
def test_a_circuit_that_breaks_a_rule_of_the_stream_is_named(tmp_path: Path, fault: Fault, message: str) -> None:
    with pytest.raises(SimulationError) as error:
        run(write(tmp_path / "design", fault))
    assert re.search(message, str(error.value)), str(error.value)


@pytest.mark.parametrize(("fault", "where"), [
    (Fault.UNSIGNED, "back-to-back"), (Fault.CORRUPT, "stalled"), (Fault.STATEFUL, "after reset")],
    ids=lambda value: value.name if isinstance(value, Fault) else "")
def test_a_wrong_word_is_found_in_the_run_that_shows_it(tmp_path: Path, fault: Fault, where: str) -> None:
    result = run(write(tmp_path / "design", fault))
    assert result.first is not None
    assert result.mismatches > 0
    assert result.first.run.startswith(where)


def test_a_reset_that_finds_a_stalled_input_is_played(tmp_path: Path) -> None:
    design = write(tmp_path / "design", Fault.IMPATIENT)
    assert run(design).mismatches == 0, "no reset of these finds an input that waits within a vector"
    found = run(design, drawn=vectors(4))
    assert found.first is not None and found.first.run == "drawn, stalled until short resets"


def test_resets_of_images_reach_the_layers_behind_them(tmp_path: Path) -> None:
    layers = [{"cycles": 100, "kind": "conv"}, {"cycles": 300, "kind": "flatten"}, {"cycles": 90, "kind": "linear"}]
    manifest = Manifest.load(write(tmp_path / "design", layers=layers, over_images=True))
    _, _, runs = planned(manifest, vectors(), vectors(3))
    for swept in (run for run in runs if run.moments):
        assert 2 * 300 + 380 < max(moment for moment, _ in swept.moments) <= 2 * 300 + 390


def test_one_bit_of_an_image_is_a_mismatch_and_needs_no_build(tmp_path: Path) -> None:
    folder = write(tmp_path / "design")
    right = run(folder, stalls=False)
    write_image(folder / "constants.hex", *CONSTANTS[:3], CONSTANTS[3] ^ 4, CONSTANTS[4])
    describe(folder)
    wrong = run(folder, stalls=False)
    assert wrong.mismatches * 5 == right.words_compared, "one word of five is wrong"
    assert wrong.first is not None
    assert wrong.first.word == 3
    assert wrong.seconds_build < 1, "the image must not be part of what is cached"


def test_single_vectors_are_sequences_of_one_step(tmp_path: Path) -> None:
    inputs = np.random.default_rng(3).integers(-2048, 2048, (7, 5))
    result = verify(write(tmp_path / "design"), Vectors(inputs, inputs + CONSTANTS, NETWORK))
    assert result.mismatches == 0
    assert result.cycles_per_step == result.cycles_per_sequence == STEP + 2


def test_a_step_that_takes_longer_than_planned_is_an_error(tmp_path: Path) -> None:
    design = write(tmp_path / "design", layers=[{"cycles": STEP - 1}])
    rule = r"^A step must take at most 8 cycles by its plan, but it takes 9$"
    with pytest.raises(SimulationError, match=rule):
        run(design, stalls=False)


def test_an_output_that_takes_longer_than_planned_is_an_error(tmp_path: Path) -> None:
    for name, where in (("latency_spaced", "into an idle circuit"), ("latency_contiguous", "in a closed loop")):
        rule = (rf"^The result of a sample that comes {where} must be there {LATENCY - 1} cycles after its last beat "
                rf"by its plan, but it takes {LATENCY}$")
        with pytest.raises(SimulationError, match=rule):
            run(write(tmp_path / f"late {name}", **{name: LATENCY - 1}), stalls=False)
        run(write(tmp_path / f"in time {name}", **{name: LATENCY}), stalls=False)
    about = write(tmp_path / "about", latency_contiguous=LATENCY - 1, estimates=["latency_contiguous"])
    assert run(about, stalls=False).latency_contiguous == LATENCY, "an estimate is no limit"


def test_steps_that_repeat_on_a_shared_array_are_held_to_their_mean(tmp_path: Path) -> None:
    changes = {"repeats": {"after": 3, "steps": 2}}
    rule = rf"^A step must take at most {STEP - 0.5} cycles by its plan, but it takes {STEP}$"
    with pytest.raises(SimulationError, match=rule):
        run(write(tmp_path / "slow", layers=[{"cycles": STEP - 0.5, "limit": "sharing: one array"}], **changes),
            stalls=False)
    right = write(tmp_path / "right", layers=[{"cycles": STEP, "limit": "sharing: one array"}], **changes)
    assert run(right, stalls=False).cycles_per_step == STEP


@pytest.mark.parametrize(("lengths", "per"), [([4], "sequence"), ([1, 1], "step"), ([2, 9, 1], "sequence")])
def test_few_and_short_sequences_show_every_figure(tmp_path: Path, per: str, lengths: list[int]) -> None:
    """The circuit takes STEP cycles for a step and 2 for its output beats, of a sequence or of each step."""
    design = write(tmp_path / "design", per=per)
    result = verify(design, vectors(per=per, lengths=lengths), stalls=False)
    step, more = (STEP + 2, 0) if per == "step" else (STEP, 2)
    assert (result.mismatches, result.sequences) == (0, len(lengths))
    assert result.words == 5 * (sum(lengths) if per == "step" else len(lengths)), "padding is no word"
    assert result.cycles_per_step == step
    assert result.steps_per_sequence == sum(lengths) / len(lengths)
    assert result.cycles_per_sequence == pytest.approx(step * sum(lengths) / len(lengths) + more)
    assert result.latency_spaced == result.latency_contiguous == LATENCY, "it does one sample after the other"


def test_sequences_of_different_lengths_are_played_at_theirs(tmp_path: Path) -> None:
    design, golden = write(tmp_path / "design"), vectors(lengths=[3, 1, 7, 2, 2, 5, 1, 4, 6, 3])
    result = verify(design, golden)
    assert (result.mismatches, result.first) == (0, None)
    assert result.words_compared > 3 * result.words
    padded = Vectors(golden.inputs, golden.outputs, NETWORK)
    assert verify(design, padded, stalls=False).mismatches > 0, "padding would be seen"


@pytest.mark.parametrize(("per", "step", "place"), [("step", 1, (5, 1)), ("sequence", 0, (5, 4))])
def test_a_wrong_word_is_found_at_its_step(tmp_path: Path, per: str, step: int, place: tuple[int, int]) -> None:
    golden = vectors(per=per, lengths=[3, 1, 7, 2, 2, 5, 1, 4, 6, 3])
    wrong = golden.outputs.copy()
    wrong[(5, step, 2) if per == "step" else (5, 2)] += 1
    found = verify(write(tmp_path / "design", per=per), replace(golden, outputs=wrong), stalls=False).first
    assert found is not None
    assert (found.sequence, found.step, found.word, found.expected) == (*place, 2, found.got + 1)
    assert str(found).startswith(f"sequence 5, step {place[1]}, word 2: expected ")


def test_interleaved_sequences_have_one_length() -> None:
    lengths = np.array([3, 2, 3, 1, 3, 2])
    inputs = np.arange(6 * 3).reshape(6, 3, 1)
    played = Played.of(inputs, inputs, lengths, streams=2)
    assert played.members.tolist() == [[3, 3], [1, 5], [0, 2], [4, 0]], "the first ones of a length fill up its turns"
    assert [vectors[:, 0].tolist() for vectors in played.inputs] == [
        [9, 9], [3, 15, 4, 16], [0, 6, 1, 7, 2, 8], [12, 0, 13, 1, 14, 2]]
    assert [len(each) for each in Played.of(inputs, inputs[:, :1], lengths, streams=2).outputs] == [2, 2, 2, 2]
    assert Played.of(inputs, inputs, lengths).members[:, 0].tolist() == [0, 1, 2, 3, 4, 5], "or the order stays"


def test_vectors_are_read_from_their_file(tmp_path: Path) -> None:
    vectors(3).save(tmp_path / "vectors.npz")
    assert verify(write(tmp_path / "design"), tmp_path / "vectors.npz", stalls=False).sequences == 3


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path / "design")
    before = sorted(folder.iterdir())
    here, temporary = tmp_path / "here", tmp_path / "temporary"
    here.mkdir()
    temporary.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    run(folder)
    assert [*here.iterdir(), *temporary.iterdir()] == []
    assert sorted(folder.iterdir()) == before


def test_progress_counts_sequences(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    run(write(tmp_path / "design"), progress=lambda *report: told.append(report))
    assert told[0] == ("build", 0, 1)
    assert [report for report in told if report[0] == "build"][-1] == ("build", 1, 1)
    total = told[-1][2]
    assert total > 9
    assert told[-1] == ("simulate", total, total)
    counts = [done for stage, done, _ in told if stage == "simulate"]
    assert counts == sorted(counts)


def test_vectors_of_another_network_are_refused(tmp_path: Path) -> None:
    golden = vectors(2)
    with pytest.raises(Refusal, match=r"must be those of the network .*0123456789ab.*, not of fedcba"):
        verify(write(tmp_path / "design"), Vectors(golden.inputs, golden.outputs, "fedcba" * 10))


@pytest.mark.parametrize(("inputs", "outputs", "rule"), [
    ((3, 4, 6), (3, 5), "Input vectors must be of 5 elements .*not of shape"),
    ((0, 4, 5), (0, 5), "Input vectors must be of 5 elements"),
    ((3, 4, 5), (3, 4), "Output vectors must be of 5 elements for each sequence"),
    ((3, 4, 5), (3, 4, 5), "Output vectors must be of 5 elements for each sequence"),
])
def test_vectors_that_do_not_fit_the_ports_are_refused(tmp_path: Path, inputs: tuple[int, ...],
                                                       outputs: tuple[int, ...], rule: str) -> None:
    misfit = Vectors(np.zeros(inputs, np.int64), np.zeros(outputs, np.int64), NETWORK)
    with pytest.raises(Refusal, match=rule):
        verify(write(tmp_path / "design"), misfit)


def test_longer_sequences_than_the_design_takes_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "design", max_steps=STEPS - 1)
    with pytest.raises(Refusal, match=rf"^Sequences must have at most {STEPS - 1} steps for .*, not {STEPS}; generate "
                                      rf"the design again with hardware.max_steps={STEPS}$"):
        run(folder)
    assert run(write(tmp_path / "other", max_steps=STEPS)).mismatches == 0


def test_inputs_wider_than_the_port_are_refused(tmp_path: Path) -> None:
    golden = vectors(2)
    with pytest.raises(Refusal, match=r"Inputs must be integers of 12 bits .* to 2048"):
        verify(write(tmp_path / "design"), Vectors(np.full_like(golden.inputs, 2048), golden.outputs, NETWORK))


def test_verilog_that_does_not_compile_is_refused_with_its_first_error(tmp_path: Path) -> None:
    folder = write(tmp_path / "design")
    text = (folder / "accumulator.v").read_text()
    (folder / "accumulator.v").write_text(text.replace("endfunction", "endfunctoin", 1))
    describe(folder)
    with pytest.raises(ToolError, match=r"must compile with Verilator .*\(%Error: accumulator\.v:\d+:.*build\.log"):
        run(folder)
    assert "syntax error" in (folder / "build.log").read_text()


def test_a_simulator_that_dies_leaves_its_log(tmp_path: Path) -> None:
    folder = write(tmp_path / "design")
    write_image(folder / "constants.hex", *range(9))
    describe(folder)
    with pytest.raises(ToolError, match=r"must run to its end.*\(%Error: constants\.hex:.*simulation\.log"):
        run(folder)
    assert (folder / "simulation.log").stat().st_size > 0
    write_image(folder / "constants.hex", *CONSTANTS)
    describe(folder)
    run(folder, stalls=False)
    assert not (folder / "simulation.log").exists(), "the log of an earlier failure has to go"


def test_a_sequence_that_takes_longer_than_the_patience_is_no_fault(tmp_path: Path) -> None:
    """The last vector is held back for as long as a sequence takes: nothing moves then, and nothing is stuck."""
    design = write(tmp_path / "design")
    assert verify(design, vectors(), stalls=False, patience=STEP * STEPS // 2).mismatches == 0


@pytest.mark.parametrize(("max_steps", "asked", "chosen"), [
    (None, None, 100_000), (320, None, 100_000 + 2 * 70 * STEPS), (320, 50, 50)])
def test_patience_is_longer_where_a_sequence_goes_in_as_a_whole_first(tmp_path: Path, max_steps: int | None,
                                                                    asked: int | None, chosen: int) -> None:
    manifest = Manifest.load(write(tmp_path / "design", max_steps=max_steps, layers=[{"cycles": 30}, {"cycles": 40}]))
    played = vectors()
    job = job_of(manifest, (), Played.of(played.inputs, played.outputs[:, None]), asked)
    assert job.patience == chosen
