"""The arrays of an ``.npz`` archive, read without trusting what it says of itself.

What an archive declares is checked before anything is allocated: a compressed byte cannot become more than 1,032
(deflate's bound), a header has the shape of its data, and all arrays together stay below a limit. No objects are read.
"""
import re
import struct
import zipfile
from collections.abc import Container
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

__all__ = ["LIMIT", "ArchiveError", "read_arrays"]

LIMIT = 1 << 33
"""Bytes of all arrays of an archive together: those of the vectors of the largest data set fit in."""

MEMBERS = 1 << 16
INFLATED = 1032
HEADER = 10_000

_DIRECTORY = re.compile(
    r"\{'descr': '(?P<type>[<>|=][biufcSU]\d{1,6})', 'fortran_order': (?P<fortran>True|False), "
    r"'shape': \((?P<shape>(?:\d{1,18}, ?)*(?:\d{1,18})?)\), \} *\n")


class ArchiveError(ValueError):
    """The fault of an archive."""


def read_arrays(file: BinaryIO, limit: int = LIMIT, only: Container[str] = ()) -> dict[str, NDArray[np.generic]]:
    """The arrays of an archive that `numpy.savez` wrote, by name.

    Parameters:
        only: names of those that are wanted, if not all.

    Raises:
        ArchiveError: when it is damaged, holds anything else than arrays of plain values, or more than ``limit`` bytes.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            _check(members, limit)
            return {name: _array(archive, info) for info in members
                    if (name := info.filename.removesuffix(".npy")) in only or not only}
    except ArchiveError:
        raise
    except Exception as error:  # A damaged archive fails in a dozen ways, from zlib.error to NotImplementedError.
        raise ArchiveError(str(error) or type(error).__name__) from None


def _check(members: list[zipfile.ZipInfo], limit: int) -> None:
    names = [info.filename for info in members]
    if len(names) > MEMBERS or len(set(names)) < len(names):
        raise ArchiveError("it has too many members, or two of one name")
    for info in members:
        if not info.filename.endswith(".npy") or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ArchiveError(f"its member {info.filename[:100]!r} is no array")
        if info.file_size > INFLATED * (info.compress_size + 1):
            raise ArchiveError(f"its member {info.filename[:100]!r} cannot have {info.file_size:,} bytes")
    if (total := sum(info.file_size for info in members)) > limit:
        raise ArchiveError(f"its arrays have {total:,} bytes, more than {limit:,}")


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[np.generic]:
    name = info.filename[:100]
    with archive.open(info) as member:
        start = member.read(8)
        if start[:6] != b"\x93NUMPY" or start[6:] not in (b"\x01\x00", b"\x02\x00", b"\x03\x00"):
            raise ArchiveError(f"its member {name!r} is no array")
        width = "<H" if start[6] == 1 else "<I"
        size, = struct.unpack(width, member.read(struct.calcsize(width)))
        if size > HEADER:
            raise ArchiveError(f"the header of {name!r} has {size:,} bytes, more than {HEADER:,}")
        found = _DIRECTORY.fullmatch(member.read(size).decode("latin1"))
        if found is None:
            raise ArchiveError(f"{name!r} must be an array of numbers or texts, not of objects, with a header as numpy "
                               "writes it")
        dtype, shape = np.dtype(found["type"]), tuple(map(int, re.findall(r"\d+", found["shape"])))
        declared = dtype.itemsize
        for extent in shape:
            declared *= extent
        rest = info.file_size - 8 - struct.calcsize(width) - size
        if declared != rest:
            raise ArchiveError(f"{name!r} declares {declared:,} bytes of data, but has {rest:,}")
        values = np.empty(shape, dtype, order="F" if found["fortran"] == "True" else "C")
        data = values.reshape(-1, order="A").view(np.uint8) if declared else np.empty(0, np.uint8)
        at = 0
        while at < declared:
            part = member.read(min(1 << 20, declared - at))
            if not part:
                raise ArchiveError(f"{name!r} ends after {at:,} of {declared:,} bytes")
            data[at:at + len(part)] = np.frombuffer(part, np.uint8)
            at += len(part)
        if member.read(1):
            raise ArchiveError(f"{name!r} goes on behind its data")
        return values
