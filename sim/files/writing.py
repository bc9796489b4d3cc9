"""Files and folders that are written whole or not at all.

A file is written under a temporary name, brought to the disk and renamed, so that a killed run leaves the old file or
the new one.
"""
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from circulant.sim.files import files, temporaries
from circulant.sim.refusal import Refusal, unusable

__all__ = ["atomic_bytes", "atomic_text", "naming", "replaced_folder"]


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """A block that writes ``path``.

    Raises:
        Refusal, ToolError: in place of an error of the operating system; it names ``path`` where that names a
            temporary, a folder around it or nothing, and the file that it names where that is another one.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise unusable(_subject(path, error), error) from None


def _subject(path: str | Path, error: OSError) -> str | Path:
    """The file that an error concerns, by the name that the user knows."""
    if not isinstance(error.filename, str | bytes):
        return path
    named, target = os.path.abspath(os.fsdecode(error.filename)), os.path.realpath(path)
    ours = any(part.startswith(temporaries.prefix(os.path.basename(target))) for part in Path(named).parts)
    around = Path(target).is_relative_to(named) or Path(named).is_relative_to(target)
    return path if ours or around or Path(os.path.abspath(path)).is_relative_to(named) else os.fsdecode(error.filename)


def atomic_bytes(path: str | Path, data: bytes) -> None:
    """Write ``data`` to ``path`` through a temporary file in the same folder and a rename, both brought to
    the disk.

    Raises:
        Refusal, ToolError: as `naming`.
    """
    with naming(path):
        _replace(Path(path), data)


def _replace(path: Path, data: bytes) -> None:
    path = Path(os.path.realpath(path))  # What a link points at is written, and the link stays.
    if path.exists() and not path.is_file():
        raise Refusal(f"{path} must be a regular file or none, but it is something else; choose another path")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporaries.sweep(path.parent)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=temporaries.prefix(path.name))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
        files.sync(path.parent)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def atomic_text(path: str | Path, text: str) -> None:
    atomic_bytes(path, text.encode())


@contextmanager
def replaced_folder(folder: str | Path) -> Iterator[Path]:
    """A new folder to write into. It replaces ``folder`` when the block ends without an error.

    A run that is killed leaves the old folder, the new one, or, between two renames, the old one under a hidden name
    beside it, which the next one puts back; never a mixture.

    Raises:
        Refusal, ToolError: as `naming`.
    """
    with naming(folder), _replaced(Path(folder)) as fresh:
        yield fresh


@contextmanager
def _replaced(folder: Path) -> Iterator[Path]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporaries.sweep(folder.parent)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=temporaries.prefix(folder.name)) as temporary:
        fresh, old = Path(temporary) / "new", Path(temporary) / "old"
        fresh.mkdir()
        yield fresh
        for path in (*fresh.rglob("*"), fresh):
            files.sync(path)
        try:
            if folder.exists():
                folder.rename(old)
            fresh.rename(folder)
            files.sync(folder.parent)
        except BaseException:
            if old.exists() and not folder.exists():
                old.rename(folder)
            raise
