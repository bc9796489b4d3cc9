"""Campaigns: the order of the plan, what is done already, trainings side by side, what stops and what fails."""
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from benchmarks import campaign, experiments
from benchmarks.experiments import Row
from tests.benchmarks.test_results import trained
from tests.processes import alive, soon
from tests.sources import ROOT

TINY = ("training.dense_epochs=1", "training.direct_epochs=1", "data.subset=64", "data.name=digits", "data.steps=0",
        "model.hidden=16")

ROWS = f"""
[sets]
tiny = {list(TINY)!r}

[[row]]
experiment = "fsdd-gru"
label = "tiny-k8"
sets = ["tiny"]
settings = ["training.method=direct", "compression.block_size=8", "training.start=dense"]
base = "tiny-start"
against = "tiny-start"
seeds = [1, 0]
why = "worth most"

[[row]]
experiment = "fsdd-gru"
label = "tiny-start"
sets = ["tiny"]
settings = ["compression.block_size=1", "training.admm_epochs=0", "training.retrain_epochs=0"]
base = ""
seeds = [0]
why = "the parent"
"""


@pytest.fixture
def places(tmp_path):
    """File of the rows, folder of the runs, folder of the records."""
    file = tmp_path / "campaign.toml"
    file.write_text(ROWS)
    return file, tmp_path / "runs", tmp_path / "kept"


def trainings(runs):
    """The processes whose command names the folder of the runs, but for the campaign itself."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            text = each.read_bytes()
            found += [each.parent.name] if str(runs).encode() in text and b"--kept" not in text and alive(
                int(each.parent.name)) else []
    return found


def labels(jobs) -> list[tuple[str, int]]:
    return [(job.row.label, job.seed) for job in jobs]


def test_the_order_is_that_of_the_file_with_parents_first(places):
    jobs = campaign.plan(*places)
    assert labels(jobs) == [("tiny-start", 1), ("tiny-k8", 1), ("tiny-start", 0), ("tiny-k8", 0)]
    assert [job.parent and labels([job.parent])[0] for job in jobs] == [None, ("tiny-start", 1), None,
                                                                       ("tiny-start", 0)]
    assert [job.why for job in jobs] == ["tiny-k8 starts from it", "worth most"] * 2


def test_what_is_kept_is_done_and_a_parent_without_weights_is_trained_again(places):
    file, runs, _ = places
    row, parent = (entry.row for entry in experiments.campaign(file))
    for each, seed in ((row, 1), (parent, 0)):
        trained(each, seed, 0.9, runs)
    assert labels(campaign.plan(*places)) == [("tiny-start", 0), ("tiny-k8", 0)]
    (parent.folder(0, runs) / "model.pt").touch()
    assert labels(jobs := campaign.plan(*places)) == [("tiny-k8", 0)] and jobs[0].parent is None


@pytest.mark.soak
def test_trainings_run_side_by_side_and_their_records_are_kept(places):
    _, runs, kept = places
    said: list[str] = []
    jobs = campaign.plan(*places)
    done, failed = campaign.run(jobs, at_once=2, below=runs, kept=kept, note=said.append)
    assert failed == [] and sorted(labels(done)) == sorted(labels(jobs)), said
    assert [line.partition(": ")[2] for line in said[:2]] == ["begins", "begins"], "both parents begin at once"
    assert [line for line in said if "accuracy" in line and "k8" in line]
    assert campaign.plan(*places) == []


def test_the_time_is_kept_and_a_later_call_goes_on(places, monkeypatch):
    file, runs, kept = places
    long = file.read_text().replace("training.dense_epochs=1", "training.dense_epochs=3000")
    file.write_text(long.replace('"data.subset=64", ', ""))
    experiments.campaign.cache_clear()
    said: list[str] = []
    jobs = campaign.plan(*places)[:1]
    monkeypatch.setattr(campaign, "POLL", 0.5)
    checkpoint, began = jobs[0].row.folder(1, runs) / "checkpoint" / "training.pt", time.monotonic()
    # The time is over when there is a checkpoint; a machine under load may take long to begin.
    monkeypatch.setattr(campaign, "time", SimpleNamespace(
        sleep=time.sleep, monotonic=lambda: 60.0 * (checkpoint.exists() or time.monotonic() > began + 150)))
    done, failed = campaign.run(jobs, at_once=1, minutes=0.5, below=runs, kept=kept, note=said.append)
    assert (done, failed) == ([], []) and said[-1].endswith("stopped, goes on with the next call")
    assert checkpoint.exists()
    assert campaign._command(jobs[0], runs)[-1] == "--resume"


@pytest.mark.parametrize("end", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_a_campaign_that_is_ended_leaves_no_process(end, places):
    """Also one that ignores SIGINT, as those do that a shell starts in the background."""
    file, runs, kept = places
    file.write_text(file.read_text().replace("training.dense_epochs=1", "training.dense_epochs=30000"))
    code = ("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); from benchmarks.campaign import command; "
            "command()")
    with subprocess.Popen([*map(str, (sys.executable, "-c", code, "--jobs", "1", "--file", file, "--runs", runs,
                                      "--kept", kept))], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(2)]
        assert said[1].endswith("seed 1: begins\n"), said
        assert soon(lambda: trainings(runs)), "a training runs"
        process.send_signal(signal.Signals[end])
        said += process.communicate(timeout=100)[0].splitlines()
    assert process.returncode and soon(lambda: not trainings(runs)), said
    assert end == "SIGKILL" or said[-1].endswith("stopped, goes on with the next call")
    experiments.campaign.cache_clear()
    assert labels(campaign.plan(*places))[0] == ("tiny-start", 1)


def test_what_starts_from_a_training_that_failed_is_left_out(places):
    _, runs, kept = places
    said: list[str] = []
    broken = Row("fsdd-gru", "broken", ("data.path=/nowhere", "training.dense_epochs=1"), base="")
    parent = campaign.Job(broken, 0)
    done, failed = campaign.run([parent, campaign.Job(broken, 1, parent)], at_once=1, below=runs, kept=kept,
                                note=said.append)
    assert (done, len(failed)) == ([], 2) and said[-1].endswith("left out, as fsdd-gru broken, seed 0 failed")
    assert "/nowhere" in (runs / "fsdd-gru" / "broken-s0.log").read_text()


def test_the_command_prints_its_plan_and_trains_nothing(places):
    file, runs, kept = places
    found = CliRunner().invoke(campaign.command, ["--file", str(file), "--runs", str(runs), "--kept", str(kept),
                                                  "--jobs", "3", "--dry-run"], catch_exceptions=False)
    assert found.output.count("tiny-") >= 4 and found.output.startswith("  1 fsdd-gru tiny-start, seed 1: ")
    assert "  2 fsdd-gru tiny-k8, seed 1, behind tiny-start: worth most\n" in found.output
    assert found.output.count("compression.block_size=8") == 1, "the settings of a row are said once"
    assert not runs.exists() and not kept.exists()


def test_a_gpu_has_a_core_left_for_the_campaign(monkeypatch):
    monkeypatch.setattr(campaign.os, "sched_getaffinity", lambda process: set(range(16)))
    assert (campaign.side_by_side(True), campaign.side_by_side(False)) == (15, 16)


def test_every_row_of_the_campaign_is_in_the_tables_and_says_what_it_is_for():
    entries = experiments.campaign()
    for entry in entries:
        assert entry.why and entry.row in experiments.rows(entry.row.experiment), entry.row.label
    assert len({(entry.row.experiment, entry.row.label) for entry in entries}) == len(entries)
    assert Path(experiments.CAMPAIGN).name == "campaign.toml"
