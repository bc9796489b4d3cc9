"""A compiler's stand-in that keeps the objects of Verilator's run-time library, which are the same for every design.

make calls it as ``python objcache.py g++ … -c -o verilated.o …/include/verilated.cpp`` through its OBJCACHE variable.
The library takes longer to compile than a design of 100 multipliers; every design after the first finds it here, in
the folder CIRCULANT_OBJECTS. An object is kept with its SHA-256 behind it, and one that is cut or changed is compiled
anew. It imports nothing of ours: it runs once for each file.
"""
import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STALE_SECONDS = 3600
"""No object takes so long."""


def main(command: list[str], store: Path) -> int:
    """Run the command, or copy its object from the store; returns the exit status."""
    source = Path(command[-1])
    if "-o" not in command or source.parent.name != "include" or not source.name.startswith("verilated"):
        return subprocess.call(command)
    made = Path(command[command.index("-o") + 1])
    kept = store / f"{hashlib.sha256(chr(0).join(command).encode()).hexdigest()}.sealed"
    if (found := read(kept)) is not None:
        made.write_bytes(found)
        return 0
    status = subprocess.call(command)
    if status == 0:
        with contextlib.suppress(OSError):  # A cache that cannot be written costs time, no build.
            keep(kept, made.read_bytes())
    return status


def read(kept: Path) -> bytes | None:
    """An object that was kept; None where it is missing or not as it was."""
    try:
        if not kept.is_file():
            return None
        data = kept.read_bytes()
    except OSError:
        return None
    return data[:-32] if data[-32:] == hashlib.sha256(data[:-32]).digest() and len(data) > 32 else None


def keep(kept: Path, data: bytes) -> None:
    """Keep an object, and sweep what killed processes left."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    for left in kept.parent.glob(".building-*"):
        if time.time() - left.stat().st_mtime > STALE_SECONDS:
            left.unlink()
    if kept.is_dir():
        shutil.rmtree(kept)
    handle, temporary = tempfile.mkstemp(prefix=".building-", dir=kept.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data + hashlib.sha256(data).digest())
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, kept)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(os.environ["CIRCULANT_OBJECTS"])))
