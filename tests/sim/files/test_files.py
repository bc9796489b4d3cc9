"""Regular files within a bound, and nothing else."""
import errno
import hashlib
import os
import socket
import tracemalloc
from pathlib import Path

import pytest

from circulant.sim.files import files


def pipe(path):
    os.mkfifo(path)


def bind(path):
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.close()


@pytest.mark.parametrize(("make", "kind"), [
    (pipe, "a pipe"), (lambda path: path.symlink_to("/dev/zero"), "a device"), (lambda path: path.mkdir(), "a folder"),
    (bind, "a socket"), (lambda path: (pipe(path.with_name("p")), path.symlink_to("p")), "a pipe")])
@pytest.mark.parametrize("read", [files.read_bytes, files.read_text, files.sha256])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path, monkeypatch, make, kind, read):
    monkeypatch.chdir(tmp_path)  # A socket's path is short.
    make(tmp_path / "x")
    with pytest.raises(files.Irregular, match=f"^it is {kind}$"):
        read("x")


@pytest.mark.parametrize("size", [11, 1 << 40])
def test_what_is_above_the_limit_is_refused_unread(tmp_path, size):
    (tmp_path / "x").touch()
    os.truncate(tmp_path / "x", size)
    with pytest.raises(files.Irregular, match=rf"^it has {size:,} bytes, more than 10$"):
        files.read_bytes(tmp_path / "x", 10)


def test_a_file_that_grows_under_the_reader_is_refused():
    with pytest.raises(files.Irregular, match=r"^it has more than 3 bytes$"):
        files.read_bytes("/proc/self/status", 3)


def test_a_file_that_has_no_size_is_read_to_its_end():
    assert files.read_bytes("/proc/self/cmdline") == Path("/proc/self/cmdline").read_bytes()


def test_a_small_file_takes_little_memory(tmp_path):
    (tmp_path / "x").write_bytes(bytes(1000))
    tracemalloc.start()
    try:
        assert files.read_bytes(tmp_path / "x") == bytes(1000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20, f"{peak:,} bytes for a file of 1,000"


def test_a_regular_file_is_read(tmp_path):
    (tmp_path / "x").write_text("größe")
    (tmp_path / "link").symlink_to("x")
    assert files.read_text(tmp_path / "link") == "größe"
    assert files.read_bytes(tmp_path / "x", 7) == "größe".encode()
    assert files.sha256(tmp_path / "x") == hashlib.sha256("größe".encode()).hexdigest()


def test_a_missing_file_is_another_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        files.read_bytes(tmp_path / "x")


@pytest.mark.parametrize(("error", "words"), [
    (OSError(errno.ENOSPC, "No space left on device", "x"), "No space left on device"),
    (files.Irregular("x", "it is a pipe"), "it is a pipe"), (ValueError("one\ntwo"), "one"),
    (ValueError("Set allow_pickle=True"), "it is damaged, or holds objects of Python, which are never loaded"),
    (KeyError(), "KeyError")])
def test_the_reason_is_a_few_words(error, words):
    assert files.reason(error) == words


def test_whatever_there_is_can_be_discarded(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x").touch()
    (tmp_path / "link").symlink_to("folder")
    for name in ("link", "folder", "missing"):
        files.discard(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
