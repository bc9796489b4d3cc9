"""Libraries by name: where they are found, and what is said where they are not."""
import os
from pathlib import Path

import pytest

from circulant.boards.asic.cells.catalogue import _beside, known, library
from circulant.sim.refusal import Refusal
from tests.boards.asic import tiny


def test_three_libraries_are_known():
    assert list(known()) == ["sky130hd", "sg13g2", "asap7"]
    assert [entry.mhz for entry in known().values()] == [125, 200, 1000]


def test_the_files_of_the_known_libraries_have_the_names_that_they_are_found_by():
    folder = Path(os.environ.get("CIRCULANT_DATA") or _beside())
    if not (folder / "liberty").is_dir():
        pytest.skip(f"{folder / 'liberty'} is not there")
    for entry in known().values():
        assert [file for file in entry.files if not (folder / file).is_file()] == []


def test_a_file_of_ones_own(tmp_path):
    (tmp_path / "own.lib").write_text(tiny.liberty())
    found, entry = library((str(tmp_path / "own.lib"),))
    assert found.name == "own" and entry.mhz == 100


def test_a_missing_library_says_where_it_belongs(tmp_path, monkeypatch):
    monkeypatch.setenv("CIRCULANT_DATA", str(tmp_path))
    with pytest.raises(Refusal, match=r"^The library sg13g2 must lie in .*, but liberty/ihp_sg13g2/.* is not there; "
                                      r"name the folder that holds it in CIRCULANT_DATA, or give your \.lib files"):
        library(("sg13g2",))
    with pytest.raises(Refusal, match=r"^A library must be one of sky130hd, sg13g2, asap7 or a liberty file, not "
                                      r"'sky130'; did you mean 'sky130hd'"):
        library(("sky130",))
