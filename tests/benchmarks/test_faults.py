from click.testing import CliRunner

from benchmarks import faults
from benchmarks.commands import main


def test_progress_is_said_under_the_name_of_the_run(monkeypatch, tmp_path):
    monkeypatch.setattr(faults, "FOLDER", tmp_path)
    monkeypatch.setattr(faults.steps, "train", lambda run, show, resume: show("dense", 1, 3, "loss 2"))
    monkeypatch.setattr(faults.steps, "quantize", lambda run, show: show("ranges", 0, 0))
    seen = []
    run = faults._Bench(lambda *said: seen.append(said)).made("k4", (faults.EIGHT, "compression.block_size=4"))
    assert (run.folder, run.experiment.compression.block_size) == (tmp_path / "k4", 4)
    assert seen == [("k4: dense", 1, 3, "loss 2"), ("k4: ranges", 0, 0, "")]


def test_a_log_of_the_command_has_a_line_for_each_task(monkeypatch):
    def measured(runs, parts, show):
        show("k8: drawing faults", 31, 31)
        return {"benchmark": "faults", "table": {"runs": str(runs), "parts": " ".join(parts)}}

    monkeypatch.setattr(faults, "measure", measured)
    found = CliRunner().invoke(main, ["faults", "--runs", "7", "--part", "noise"])
    assert found.exit_code == 0, found.output
    assert "k8: drawing faults: 31 of 31\n" in found.stderr and "noise" in found.stdout
