"""A run as one file: another machine unpacks what was verified, and sees what differs."""
import json
import zipfile

import pytest

from circulant.run import steps
from circulant.run.run_folder import recorded
from circulant.share import checked, pack, unpack
from circulant.sim.refusal import Refusal


@pytest.fixture
def packed(finished, tmp_path):
    (finished.folder / "boards").mkdir()
    (finished.folder / "boards/large.bit").write_bytes(b"x")
    names = pack(finished, tmp_path / "shared.zip")
    assert "boards/large.bit" not in names and "hardware/top.v" in names
    return tmp_path / "shared.zip"


@pytest.fixture
def simulated(monkeypatch):
    """The figures of a simulation that is not done."""
    figures = {}
    monkeypatch.setattr(steps, "simulate", lambda run, show: {
        "verification": recorded(run, "simulate")["verification"] | figures})
    return figures


def test_what_is_unpacked_is_what_was_packed(finished, packed, tmp_path, simulated):
    run = unpack(packed, tmp_path / "there")
    for path in run.folder.rglob("*"):
        assert path.is_dir() or path.read_bytes() == (finished.folder / path.relative_to(run.folder)).read_bytes()
    found = checked(run)
    assert found["same"] and found["golden"]["values"] and not found["golden"]["differ"]
    simulated["cycles_per_step"] = 99.0
    found = checked(run)
    assert not found["same"] and found["simulated"]["cycles_per_step"][1] == 99


def test_a_file_that_changed_is_refused(packed, tmp_path, simulated):
    run = unpack(packed, tmp_path / "there")
    run.path("hardware/top.v").write_text("module other; endmodule\n")
    with pytest.raises(Refusal, match=r"top\.v"):
        checked(run)
    with pytest.raises(Refusal, match=r"top\.v"):
        pack(run, tmp_path / "again.zip")


@pytest.mark.parametrize("name", ["../outside", "/outside", "a\\..\\b"])
def test_a_name_outside_the_folder_is_refused(tmp_path, name):
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr(name, "")
    with pytest.raises(Refusal, match=r"must hold files of one folder, 16 GiB at most, but names"):
        unpack(tmp_path / "bad.zip", tmp_path / "there")
    assert not (tmp_path / "there").exists() and not (tmp_path / "outside").exists()


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 cut off", None])
def test_what_is_no_archive_is_refused(tmp_path, data):
    if data is not None:
        (tmp_path / "bad.zip").write_bytes(data)
    with pytest.raises(Refusal, match="must be an archive that circulant share wrote"):
        unpack(tmp_path / "bad.zip", tmp_path / "there")


def test_the_commands(call, packed, finished, simulated, tmp_path):
    code, out, _ = call("share", finished.folder, "--out", tmp_path / "one.zip")
    assert code == 0 and "verify it elsewhere with: circulant check one.zip" in out
    assert call("check", tmp_path / "one.zip", "--out", tmp_path / "kept")[0] == 0
    assert (tmp_path / "kept/network.json").is_file()
    simulated["mismatches"] = 3
    code, out, _ = call("check", tmp_path / "one.zip", "--json")
    assert code == 1 and json.loads(out)["simulated"]["mismatches"] == [0, 3]
    assert call("check", tmp_path / "one.zip", "--out", tmp_path / "kept")[0] == 2
    assert call("share", tmp_path)[0] == 2
