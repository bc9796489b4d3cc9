"""What killed processes leave is swept by the next one; what living ones write is not."""
import os
import signal
import subprocess
import sys
import time

import pytest

from circulant.sim.files import temporaries
from circulant.sim.files.writing import atomic_text

WRITER = """
import os, sys, time
from circulant.sim.files.writing import atomic_text, replaced_folder

def stop(*_):
    print("now", flush=True)
    time.sleep(60)

if sys.argv[1] == "file":
    os.replace = stop
    atomic_text(sys.argv[2], "new")
rename = os.rename
os.rename = lambda source, target: stop() if str(source).endswith(sys.argv[1]) else rename(source, target)
with replaced_folder(sys.argv[2]) as fresh:
    (fresh / "x").write_text("new")
    if sys.argv[1] == "writing":
        stop()
"""


def killed(moment, path):
    """A process that is killed in the middle of a write."""
    process = subprocess.Popen([sys.executable, "-c", WRITER, moment, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "now\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """As a process that has swept nothing yet."""
    monkeypatch.setattr(temporaries, "_SWEPT", set())


def test_a_killed_writer_of_a_file(tmp_path):
    atomic_text(tmp_path / "file", "old")
    killed("file", tmp_path / "file")
    assert len(os.listdir(tmp_path)) == 2
    temporaries._SWEPT.clear()
    atomic_text(tmp_path / "other", "x")
    assert sorted(os.listdir(tmp_path)) == ["file", "other"]
    assert (tmp_path / "file").read_text() == "old"


@pytest.mark.parametrize("moment", ["writing", "new"])
def test_a_killed_writer_of_a_folder(tmp_path, moment):
    """While it writes, or when the old folder is aside and the new one not yet there."""
    (tmp_path / "design").mkdir()
    (tmp_path / "design" / "x").write_text("old")
    killed(moment, tmp_path / "design")
    assert (tmp_path / "design").exists() == (moment == "writing")
    temporaries.sweep(tmp_path)
    assert os.listdir(tmp_path) == ["design"]
    assert (tmp_path / "design" / "x").read_text() == "old"


def test_what_living_processes_write_stays(tmp_path):
    mine = tmp_path / f"{temporaries.prefix('file')}abcdefgh"
    mine.touch()
    foreign = tmp_path / ".file.00000000-1.abcdefgh"
    foreign.touch()
    temporaries.sweep(tmp_path)
    assert mine.exists() and foreign.exists()
    old = time.time() - temporaries.STALE_SECONDS - 10
    os.utime(foreign, (old, old))
    temporaries._SWEPT.clear()
    temporaries.sweep(tmp_path)
    assert mine.exists() and not foreign.exists()


def test_nothing_else_is_swept(tmp_path):
    names = [".file.settings", ".git", "file", ".file.0-1.abcdefgh", ".bashrc.12345678"]
    for name in names:
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, 0))
    temporaries.sweep(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted(names)


def test_a_folder_is_swept_once_and_need_not_exist(tmp_path):
    temporaries.sweep(tmp_path / "missing")
    temporaries.sweep(tmp_path)
    late = tmp_path / ".file.00000000-1.abcdefgh"
    late.touch()
    os.utime(late, (0, 0))
    temporaries.sweep(tmp_path)
    assert late.exists()
    temporaries.sweep(tmp_path, again=True)
    assert not late.exists()


def test_a_folder_lasts_as_long_as_its_block(tmp_path):
    left = tmp_path / f".circulant.{temporaries._origin()}-{2**22 + 1}.abcdefgh"
    left.mkdir()
    with temporaries.folder(tmp_path) as folder:
        (folder / "x").write_text("")
        assert os.listdir(tmp_path) == [folder.name], "the one of a dead process is swept"
    assert os.listdir(tmp_path) == []


def test_what_a_living_process_of_this_machine_writes_stays_however_old(tmp_path):
    """A simulation may take days."""
    mine = tmp_path / f"{temporaries.prefix('file')}abcdefgh"
    mine.touch()
    os.utime(mine, (0, 0))
    temporaries.sweep(tmp_path)
    assert mine.exists()
