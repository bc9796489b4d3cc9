"""The part of a design that becomes cells: its Verilog without notes for people, so that what was mapped before is
found again after changes of the generator that leave the circuit as it was."""
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from circulant.boards.asic.cells.library import Library

__all__ = ["bare", "circuit", "cells"]

_NOTE = re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*.*?\*/', re.S)
_PLACE = re.compile(r'\bsrc = "[^"]*"(?:, )?|, src = "[^"]*"(?= \*\))')
_EMPTY = re.compile(r"\(\*\s*\*\)")


def bare(verilog: str) -> str:
    """Verilog without comments, attributes ``src``, indentation and empty lines. Yosys names cells by the line that
    they come from, so lines must not move either."""
    plain = _NOTE.sub(lambda found: found[1] or " ", verilog)
    plain = _EMPTY.sub("", _PLACE.sub("", plain))
    return "".join(f"{line.strip()}\n" for line in plain.splitlines() if line.strip())


def circuit(folder: Path, described: Mapping[str, Any]) -> str:
    """A hash of what is synthesized: the bare Verilog of a design and its memory images.

    Parameters:
        folder: of the design.
        described: its manifest.
    """
    found = [described["top"], *(bare((folder / name).read_text()) for name in described["verilog"]),
             *(item for name in sorted(described["images"]) for item in (name, (folder / name).read_text()))]
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()


def cells(library: Library) -> str:
    """A hash of the files of a library."""
    return hashlib.sha256("".join(hashlib.sha256(file.read_bytes()).hexdigest() for file in library.files).encode()
                          ).hexdigest()
