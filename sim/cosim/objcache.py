"""A compiler's stand-in that keeps what is the same for every design: the objects of Verilator's run-time library and
of the program that plays beats, and the precompiled headers of all designs.

make calls it as ``python objcache.py g++ … -c -o verilated.o …/include/verilated.cpp`` through its OBJCACHE variable.
The library takes longer to compile than a design of 100 multipliers; every design after the first finds it here, in
the folder CIRCULANT_OBJECTS. An object is kept with its SHA-256 behind it, and one that is cut or changed is compiled
anew. All other files include the same large headers, which take longer than the code of a small design: the files that
CIRCULANT_JOINED names become one object, in place of the first that make compiles, and the others' are empty; where
the design is one of them, the headers come precompiled. All that takes a build of 40 lines of Verilog from 4 s of a
core to 0.8, with -O0. It imports nothing of ours, and late what a copy does not need: it runs once for each file.
"""
import contextlib
import hashlib
import os
import subprocess
import sys
from pathlib import Path

STALE_SECONDS = 3600
"""No object takes so long."""

UNUSED_SECONDS = 30 * 24 * 3600
"""Precompiled headers, of 70 MB, that nobody took for so long are removed where others are made."""

WHOLE = "Vtop__ALL.cpp"
"""The design as one file, which make does not compile where Verilator split it and said so in `LISTED`."""

LISTED, PARALLEL = Path("Vtop_classes.mk"), "VM_PARALLEL_BUILDS = 1"

PROGRAM = ("drive.cpp", "design.h", "stalls.h")
"""The program that plays beats, and what it includes of ours."""

HEADERS = '#include "verilated.h"\n#include "verilated_dpi.h"\n#include "verilated_vpi.h"\n#include <string>\n'
"""Headers of a design and of cocotb's main. The compiler takes the text where the precompiled form does not serve."""


def main(command: list[str], store: Path) -> int:
    """Run the command, or copy its object from the store; returns the exit status."""
    source = Path(command[-1])
    if "-o" not in command or not (said := identity(command, source)):
        return subprocess.call(joined(command, store))
    made = Path(command[command.index("-o") + 1])
    kept = store / f"{hashlib.sha256(said).hexdigest()}.sealed"
    if (found := read(kept)) is not None:
        made.write_bytes(found)
        return 0
    status = subprocess.call(command)
    if status == 0:
        with contextlib.suppress(OSError):  # A cache that cannot be written costs time, no build.
            keep(kept, made.read_bytes())
    return status


def identity(command: list[str], source: Path) -> bytes:
    """All that an object which is kept depends on; empty for one of a design."""
    if source.parent.name == "include" and source.name.startswith("verilated"):
        return chr(0).join(command).encode()
    if source.name == PROGRAM[0]:
        files = [(source.parent / name).read_bytes() for name in PROGRAM]
        return b"\0".join([chr(0).join(command[:-1]).encode(), *files])
    return b""


def joined(command: list[str], store: Path) -> list[str]:
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
    headers = precompiled(flags, store) if source == WHOLE else []
    return [*flags, *(word for file in [*headers, *files[:-1]] for word in ("-include", file)), files[-1]]


def precompiled(flags: list[str], store: Path) -> list[str]:
    """The file of `HEADERS` in the store, with its precompiled form beside it; nothing where it cannot be made."""
    flags = [word for word in flags if word not in ("-c", "-MMD", "-o", "Vtop__ALL.o")]
    header = store / f"{hashlib.sha256(chr(0).join([*flags, HEADERS]).encode()).hexdigest()}.h"
    kept = header.with_suffix(".h.gch")
    try:
        if read(kept) is None:
            import shutil
            import tempfile
            import time

            store.mkdir(parents=True, exist_ok=True)
            for old in store.parent.glob("*/*.gch"):
                if time.time() - old.stat().st_mtime > UNUSED_SECONDS:
                    old.unlink()
            folder = Path(tempfile.mkdtemp())
            try:
                text, made = folder / header.name, folder / kept.name
                text.write_text(HEADERS)
                if subprocess.call([*flags, "-x", "c++-header", "-o", str(made), str(text)]):
                    return []
                keep(header, HEADERS.encode(), seal=False)
                keep(kept, made.read_bytes())
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        os.utime(kept)
    except OSError:
        return []
    return [str(header)]


def read(kept: Path) -> bytes | memoryview | None:
    """An object that was kept; None where it is missing or not as it was."""
    try:
        if not kept.is_file():
            return None
        data = memoryview(kept.read_bytes())
    except OSError:
        return None
    return data[:-32] if data[-32:] == hashlib.sha256(data[:-32]).digest() and len(data) > 32 else None


def keep(kept: Path, data: bytes, *, seal: bool = True) -> None:
    """Keep an object, and sweep what killed processes left."""
    import shutil
    import tempfile
    import time

    kept.parent.mkdir(parents=True, exist_ok=True)
    for left in kept.parent.glob(".building-*"):
        if time.time() - left.stat().st_mtime > STALE_SECONDS:
            left.unlink()
    if kept.is_dir():
        shutil.rmtree(kept)
    handle, temporary = tempfile.mkstemp(prefix=".building-", dir=kept.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data + hashlib.sha256(data).digest() if seal else data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, kept)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(os.environ["CIRCULANT_OBJECTS"])))
