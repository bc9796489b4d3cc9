"""A compiler's stand-in that keeps the objects of Verilator's run-time library, which are the same for every design.

make calls it as ``python objcache.py g++ … -c -o verilated.o …/include/verilated.cpp`` through its OBJCACHE variable.
The library takes longer to compile than a design of 100 multipliers; every design after the first finds it here, in
the folder CIRCULANT_OBJECTS. An object is kept with its SHA-256 behind it, and one that is cut or changed is compiled
anew. All other files include the same large headers, which take longer than the code of a small design: the files that
CIRCULANT_JOINED names become one object, in place of the first that make compiles, and the others' are empty (a build
of 40 multipliers takes 2.4 s of a core instead of 4.9 with -O0, 3.8 instead of 5.7 with -O1). It imports nothing of
ours: it runs once for each file.
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

WHOLE = "Vtop__ALL.cpp"
"""The design as one file, which make does not compile where Verilator split it and said so in `LISTED`."""

LISTED, PARALLEL = Path("Vtop_classes.mk"), "VM_PARALLEL_BUILDS = 1"


def main(command: list[str], store: Path) -> int:
    """Run the command, or copy its object from the store; returns the exit status."""
    source = Path(command[-1])
    if "-o" not in command or source.parent.name != "include" or not source.name.startswith("verilated"):
        return subprocess.call(joined(command))
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


def joined(command: list[str]) -> list[str]:
    """The command that compiles all of CIRCULANT_JOINED where it is to compile the first of them, the last one behind
    the others, so that its macros reach none of them; where it is another of them, nothing."""
    *flags, source = command
    files = os.environ.get("CIRCULANT_JOINED", "").split(os.pathsep)
    if files[0] == WHOLE and PARALLEL in LISTED.read_text():
        files = files[1:]
    if source not in files:
        return command
    if source != files[0]:
        return [*flags, "-x", "c++", os.devnull]
    return [*flags, *(word for file in files[:-1] for word in ("-include", file)), files[-1]]


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
