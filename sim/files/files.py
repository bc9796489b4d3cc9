"""Files on disk: regular ones, read within a bound, and written so that they outlast a power cut.

A pipe would block its reader, and a device would feed it without end; so both are refused before they are opened, as
is a folder, or a file above the limit.
"""
import hashlib
import io
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

__all__ = ["LIMIT", "TEXT_LIMIT", "Irregular", "discard", "opened", "read_bytes", "read_stream", "read_text", "reason",
           "sha256", "sync"]

TEXT_LIMIT = 1 << 28
"""Bytes of a text that is read as a whole: more than the manifest of the largest network that fits a device."""

LIMIT = 1 << 34
"""Bytes of any other file."""

_PIECE = 1 << 16

_ADVICE = re.compile("pickle|weights.only", re.I)

_KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
          stat.S_IFSOCK: "a socket"}


class Irregular(OSError):
    """The error of a path that is no regular file, or one above the limit."""

    def __init__(self, path: str | Path, what: str) -> None:
        super().__init__(what)
        self.path = path


@contextmanager
def opened(path: str | Path, limit: int = LIMIT) -> Iterator[io.BufferedReader]:
    """A regular file of at most ``limit`` bytes, open for reading.

    Raises:
        Irregular: when it is something else, or larger.
        OSError: when it cannot be opened.
    """
    _require_regular(path, os.stat(path), limit)
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        _require_regular(path, os.fstat(file.fileno()), limit)
        yield file


def read_bytes(path: str | Path, limit: int = LIMIT) -> bytes:
    """The contents of a file.

    Raises:
        Irregular, OSError: as `opened`.
    """
    with opened(path, limit) as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(size + 1)  # What is asked for takes memory, whether it is there or not.
        if len(data) > size:  # It grows; or it is one of /proc, which have no size.
            data += read_stream(file, limit - len(data))
    if len(data) > limit:
        raise Irregular(path, f"it has more than {limit:,} bytes")
    return data


def read_stream(stream: BinaryIO, limit: int = LIMIT) -> bytes:
    """The bytes of a stream that are left; one that has more than ``limit`` is given up soon after them."""
    found = io.BytesIO()
    while found.tell() <= limit and (piece := stream.read(_PIECE)):
        found.write(piece)
    return found.getvalue()


def read_text(path: str | Path, limit: int = TEXT_LIMIT) -> str:
    """The UTF-8 text of a file.

    Raises:
        Irregular, OSError: as `opened`.
        UnicodeDecodeError: when it is none.
    """
    return read_bytes(path, limit).decode()


def sha256(path: str | Path) -> str:
    """SHA-256 of a file's bytes.

    Raises:
        Irregular, OSError: as `opened`.
    """
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def reason(error: Exception) -> str:
    """Why a file cannot be used, in a few words."""
    known = error.strerror if isinstance(error, OSError) else None
    found = known or (str(error).splitlines() or [type(error).__name__])[0]
    # What torch and numpy say of such a file is how to run the code in it.
    return "it is damaged, or holds objects of Python, which are never loaded" if _ADVICE.search(found) else found


def sync(path: str | Path) -> None:
    """Have a file or the entries of a folder on the disk before this returns, where the file system can."""
    handle = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)


def discard(path: Path) -> None:
    """Remove a file or a folder with all that is in it, if there is one."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _require_regular(path: str | Path, status: os.stat_result, limit: int) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        raise Irregular(path, f"it is {_KINDS.get(kind, 'no regular file')}")
    if status.st_size > limit:
        raise Irregular(path, f"it has {status.st_size:,} bytes, more than {limit:,}")
