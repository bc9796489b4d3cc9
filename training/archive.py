"""Archives of `torch.save`, which are not trusted: only plain values and tensors are read, none beyond the file."""
import io
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from circulant.sim.files import files

__all__ = ["LIMIT", "read"]

LIMIT = 1 << 33
"""Bytes of a file."""

NODES = 5_000_000
"""Values in it: a list that holds itself many times over would otherwise be walked for ever."""

SHARED = 16
"""How many times all of the file's bytes may be part of some tensor."""


def read(path: str | Path) -> Any:
    """The document of a file; no code in it is run.

    Raises:
        OSError: when there is no such regular file.
        Exception: of many types, when it is damaged; `circulant.sim.files.files.reason` says why.
    """
    data = files.read_bytes(path, LIMIT)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
    if any(info.compress_type != zipfile.ZIP_STORED for info in members) or (
            sum(info.file_size for info in members) > len(data)):
        raise ValueError("it is compressed, or declares more than it has")
    document = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    _bound(document, SHARED * len(data))
    return document


def _bound(document: Any, most: int) -> None:
    level, nodes, held = [document], 0, 0
    while level:
        nodes += len(level)
        held += sum(each.numel() * each.element_size() for each in level if isinstance(each, Tensor))
        if nodes > NODES or held > most:
            raise ValueError("it has more values than bytes")
        level = [inner for each in level if isinstance(each, dict | list | tuple | set)
                 for inner in ((*each, *each.values()) if isinstance(each, dict) else each)]
