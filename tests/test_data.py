"""Tests of real data are skipped where nobody promised the data, and fail where they are promised and missing."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.data import real

ROOT = Path(__file__).resolve().parents[1]
ONE = "tests/training/data/test_speech.py::test_fsdd"


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    monkeypatch.delenv("CIRCULANT_DATA", raising=False)
    monkeypatch.setattr("tests.data.data_folder", lambda: tmp_path)
    return tmp_path


def skips(mark):
    assert mark.name == "skipif"
    return mark.args[0]


def test_data_that_are_at_hand(nowhere):
    (nowhere / "fsdd").mkdir()
    assert not skips(real("fsdd"))


def test_data_that_nobody_promised(nowhere):
    mark = real("fsdd")
    assert skips(mark)
    assert mark.kwargs["reason"] == f"{nowhere}/fsdd is absent; name the folder of data sets in CIRCULANT_DATA"


def test_data_that_are_expected_and_missing(nowhere, monkeypatch):
    monkeypatch.setenv("CIRCULANT_DATA", str(nowhere))
    assert not skips(real("fsdd"))


def test_missing_data_fail_a_run_that_expects_them(tmp_path):
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", ONE], cwd=ROOT, text=True,
                          capture_output=True, env={**os.environ, "CIRCULANT_DATA": str(tmp_path)})
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("1 failed in ")
    assert f"The data set 'fsdd' must be in {tmp_path}/fsdd, but that does not exist" in done.stdout
