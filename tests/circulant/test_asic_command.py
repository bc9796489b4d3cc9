"""The command ``circulant asic``: what it refuses, before any tool works."""
import pytest

from tests.boards.asic import tiny


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run folder whose steps count as done."""
    from circulant import asic_command

    monkeypatch.setattr(asic_command, "require", lambda run, step: None)
    monkeypatch.setattr(asic_command, "load", lambda folder: None)
    monkeypatch.setattr(asic_command, "Run", lambda folder, experiment: type("R", (), {"path": folder.joinpath}))
    return tmp_path


def test_a_library_without_flip_flops(run, call):
    (run / "gates.lib").write_text(tiny.liberty(flip_flops=False))
    code, out, err = call("asic", str(run), "--library", str(run / "gates.lib"), "--samples", "0")
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == ("A library must have flip-flops, but gates.lib holds 10 cells and none of them; "
                                    "name the file of sequential cells, too")


def test_an_unknown_library(run, call):
    code, _, err = call("asic", str(run), "--library", "sky13hd", "--samples", "0")
    assert code == 2
    assert err.startswith("A library must be one of sky130hd, sg13g2, asap7 or a liberty file, not 'sky13hd'; did you "
                          "mean 'sky130hd'?")


def test_a_missing_opensta_is_told_with_its_package(run, call, monkeypatch):
    design, _ = tiny.design(run)
    design.rename(run / "hardware")
    (run / "tiny.lib").write_text(tiny.liberty())
    from circulant.boards.asic import timing

    monkeypatch.setattr(timing.shutil, "which", lambda name: None)
    code, _, err = call("asic", str(run), "--library", str(run / "tiny.lib"), "--samples", "0")
    assert code == 2
    assert "Timing needs OpenSTA, but PATH has no sta; install it (on Debian: apt-get install opensta)" in err
