"""Where the files of a data set are, and reading them: every file is checked as it is read, none runs code."""
import gzip
import hashlib
import io
import lzma
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from circulant.sim.files import files
from circulant.sim.files.data_folder import data_folder
from circulant.sim.refusal import Refusal

__all__ = ["Progress", "fingerprint", "load_array", "load_npz", "locate", "silent", "unpacked"]

Progress = Callable[[str, int, int], None]
"""Called while a data set is read: the task, how much of it is done, of how much (0 where nobody knows)."""


def silent(task: str, done: int, total: int) -> None:
    """Shows nothing."""


def locate(name: str, path: str) -> Path:
    """The file or folder of a data set: ``path`` where it is given, else the folder of this name in `data_folder`.

    Raises:
        Refusal: when it does not exist.
    """
    place = Path(path).expanduser().absolute() if path else data_folder() / name
    if not place.exists():
        raise Refusal(f"The data set {name!r} must be in {place}, but that does not exist; name its folder in "
                      "data.path, or the folder that holds all of them in the environment variable CIRCULANT_DATA")
    return place


def unpacked(path: Path) -> bytes:
    """The bytes of a file, through the decompressor that its ending names (``.gz``, ``.xz``), which stops at
    `circulant.sim.files.files.LIMIT` bytes.

    Raises:
        Refusal: when it is missing, damaged, or larger when it is unpacked.
    """
    try:
        data = files.read_bytes(path)
    except OSError as error:
        raise Refusal(f"{path} must be a readable file, but it is not ({files.reason(error)}); fetch the data set "
                      "again") from None
    if path.suffix not in (".gz", ".xz"):
        return data
    try:
        with (gzip if path.suffix == ".gz" else lzma).open(io.BytesIO(data)) as stream:
            found = files.read_stream(stream, files.LIMIT)
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
        raise Refusal(f"{path} must be a whole compressed file, but it is damaged ({error}); fetch the data set "
                      "again") from None
    if len(found) > files.LIMIT:
        raise Refusal(f"{path} must have at most {files.LIMIT:,} bytes when it is unpacked, but it has more; fetch the "
                      "data set again")
    return found


def load_array(path: Path) -> NDArray[Any]:
    """The array of a ``.npy`` file, which may be compressed.

    Raises:
        Refusal: when it is missing, damaged, or holds Python objects.
    """
    data = unpacked(path)
    try:
        loaded = np.load(io.BytesIO(data), allow_pickle=False)
        if not isinstance(loaded, np.ndarray):
            raise ValueError("it is an archive of arrays")
    except Exception as error:  # A damaged header fails in a dozen ways, from tokenize.TokenError to MemoryError.
        raise Refusal(f"{path} must hold a .npy array of numbers, but does not ({files.reason(error)}); fetch "
                      "the data set again") from None
    return loaded


def load_npz(path: Path, needed: Iterable[str] = ()) -> dict[str, NDArray[Any]]:
    """The arrays of a ``.npz`` file.

    Raises:
        Refusal: when it is missing or damaged, a needed key is not in it, or it holds Python objects.
    """
    found: dict[str, NDArray[Any]] = {}
    data, key = unpacked(path), ""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            for key in archive.files:
                found[key] = archive[key]
    except Exception as error:  # A damaged archive fails in a dozen ways, from zlib.error to NotImplementedError.
        if "allow_pickle" in str(error) and key:
            raise Refusal(f"{path}: {key!r} must be an array of numbers, but holds Python objects, as ragged lists do; "
                          "pad it, and give the lengths as another array") from None
        raise Refusal(f"{path} must be an .npz archive, but cannot be read as one ({files.reason(error)}); write it "
                      "with numpy.savez") from None
    if missing := [key for key in needed if key not in found]:
        raise Refusal(f"{path} must hold the keys {', '.join(needed)}, but lacks {', '.join(missing)}; it has "
                      f"{', '.join(found) or 'none'}")
    return found


def fingerprint(paths: Iterable[Path]) -> str:
    """SHA-256 over the names and the contents of files.

    Raises:
        Refusal: when one cannot be read.
    """
    sha = hashlib.sha256()
    for path in paths:
        try:
            contents = files.sha256(path)
        except OSError as error:
            raise Refusal(f"{path} must be a readable file, but it is not ({files.reason(error)}); fetch the data set "
                          "again") from None
        sha.update(f"{path.name} {contents}\n".encode())
    return sha.hexdigest()
