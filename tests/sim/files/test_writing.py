import errno
import os
import stat
from pathlib import Path

import pytest

from circulant.sim.files import writing
from circulant.sim.refusal import Refusal, ToolError


def test_atomic_bytes(tmp_path):
    path = tmp_path / "new" / "folder" / "file"
    writing.atomic_bytes(path, b"old")
    writing.atomic_bytes(str(path), b"\x00new")
    assert path.read_bytes() == b"\x00new"
    assert os.listdir(path.parent) == ["file"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_atomic_text_is_utf8(tmp_path):
    writing.atomic_text(tmp_path / "file", "½\n")
    assert (tmp_path / "file").read_bytes() == b"\xc2\xbd\n"


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("at", ["replace", "chmod"])
def test_killed_writer_leaves_the_old_file(tmp_path, monkeypatch, error, at):
    path = tmp_path / "file"
    writing.atomic_bytes(path, b"old")

    def killed(*_):
        raise error

    monkeypatch.setattr(os, at, killed)
    with pytest.raises(error):
        writing.atomic_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_nothing_is_under_the_name_before_all_is_written(tmp_path, monkeypatch):
    seen = []
    replace = os.replace

    def watched(source, target):
        seen.append((os.path.exists(target), Path(source).read_bytes()))
        replace(source, target)

    monkeypatch.setattr(os, "replace", watched)
    writing.atomic_bytes(tmp_path / "file", b"whole")
    assert seen == [(False, b"whole")]


def test_files_and_their_folder_are_on_the_disk_before_they_have_their_name(tmp_path, monkeypatch):
    done = []
    for name in ("fsync", "replace", "rename"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *given, name=name, real=real: (done.append(name), real(*given))[1])
    writing.atomic_bytes(tmp_path / "file", b"x")
    assert done == ["fsync", "replace", "fsync"]
    done.clear()
    with writing.replaced_folder(tmp_path / "folder") as fresh:
        (fresh / "a").touch()
        (fresh / "b").touch()
    assert done == ["fsync", "fsync", "fsync", "rename", "fsync"]


# Folders.

def contents(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("exists", [False, True])
def test_a_folder_is_replaced_as_a_whole(tmp_path, exists):
    folder = tmp_path / "deep" / "design"
    if exists:
        writing.atomic_text(folder / "old.txt", "old")
    with writing.replaced_folder(folder) as fresh:
        (fresh / "new.txt").write_text("new")
        assert folder.exists() == exists
    assert contents(tmp_path) == {"deep/design/new.txt": "new"}
    assert os.listdir(folder.parent) == ["design"]


@pytest.mark.parametrize("moment", ["writing", 1, 2])
@pytest.mark.parametrize("exists", [False, True])
def test_a_folder_that_cannot_be_replaced_stays(tmp_path, monkeypatch, moment, exists):
    """It fails, or is interrupted, while files are written or at one of the renames."""
    folder = tmp_path / "design"
    if exists:
        writing.atomic_text(folder / "old.txt", "old")
    before, rename, calls = contents(tmp_path), os.rename, []

    def interrupted(source, target):
        calls.append(target)
        if len(calls) == moment:
            raise KeyboardInterrupt
        rename(source, target)

    monkeypatch.setattr(os, "rename", interrupted)

    def write():
        with writing.replaced_folder(folder) as fresh:
            (fresh / "new.txt").write_text("new")
            if moment == "writing":
                raise KeyboardInterrupt

    if moment == 2 and not exists:  # There is but one.
        write()
        return
    with pytest.raises(KeyboardInterrupt):
        write()
    assert contents(tmp_path) == before
    assert os.listdir(tmp_path) == ["design"] * exists


def test_an_error_of_the_disk_names_what_was_to_be_written(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(Refusal, match=r"^/proc/nowhere/a\.json cannot be used: No such file or directory; choose"):
        writing.atomic_text("/proc/nowhere/a.json", "{}")
    with pytest.raises(Refusal, match=r"^/proc/design cannot be used: No such file or directory"), \
            writing.replaced_folder("/proc/design"):
        pass
    monkeypatch.setattr("os.chmod", full)
    with pytest.raises(ToolError, match=rf"^{tmp_path}/a could not be written: No space left on device; make room"):
        writing.atomic_text(tmp_path / "a", "text")
    with pytest.raises(ToolError, match=rf"^{tmp_path}/b could not be written: No space left"), \
            writing.replaced_folder(tmp_path / "b"):
        full()
    assert not list(tmp_path.iterdir())


def test_an_error_of_another_file_names_that(tmp_path):
    with pytest.raises(Refusal, match=rf"^{tmp_path}/image\.hex cannot be used: No such file or directory; choose"), \
            writing.replaced_folder(tmp_path / "design"):
        (tmp_path / "image.hex").read_bytes()
    with pytest.raises(Refusal, match=rf"^{tmp_path}/design cannot be used: No such file or directory; choose"), \
            writing.replaced_folder(tmp_path / "design") as fresh:
        (fresh / "image.hex").read_bytes()
    assert not list(tmp_path.iterdir())


def test_a_link_stays_and_what_it_points_at_is_written(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    link.symlink_to(real)
    writing.atomic_text(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_nothing_but_a_file_is_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Refusal, match=r"pipe must be a regular file or none, but it is something else; choose"):
        writing.atomic_text(tmp_path / "pipe", "text")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
