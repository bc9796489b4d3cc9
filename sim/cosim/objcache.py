"""A compiler's stand-in that keeps the objects of Verilator's run-time library, which are the same for every design.

make calls it as ``python objcache.py g++ … -c -o verilated.o …/include/verilated.cpp`` through its OBJCACHE variable.
The library takes longer to compile than a design of 100 multipliers; every design after the first finds it here, in
the folder CIRCULANT_OBJECTS. It imports nothing of ours: it runs once for each file.
"""
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def main(command: list[str], store: Path) -> int:
    """Run the command, or copy its object from the store; returns the exit status."""
    source = Path(command[-1])
    if "-o" not in command or source.parent.name != "include" or not source.name.startswith("verilated"):
        return subprocess.call(command)
    made = Path(command[command.index("-o") + 1])
    kept = store / f"{hashlib.sha256(chr(0).join(command).encode()).hexdigest()}.o"
    try:
        shutil.copyfile(kept, made)
        return 0
    except FileNotFoundError:
        status = subprocess.call(command)
    if status == 0:
        store.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=store)
        os.close(handle)
        shutil.copyfile(made, temporary)
        os.replace(temporary, kept)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(os.environ["CIRCULANT_OBJECTS"])))
