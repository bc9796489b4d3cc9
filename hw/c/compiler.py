"""C compilers: found, or refused in one sentence, and a cache of the libraries that they make."""
import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from circulant.sim import child
from circulant.sim.files import cache, temporaries
from circulant.sim.files.files import discard
from circulant.sim.files.writing import atomic_bytes
from circulant.sim.refusal import Refusal, ToolError

__all__ = ["library"]

COMPILERS = ("gcc", "clang", "cc")
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
FAST = ("-O3", "-march=native")
KEPT = 50
SECONDS = 1800.0
"""Limit of the compiler, which takes half a minute for the largest networks so far."""


def library(files: Mapping[str, str], main: str) -> Path:
    """The shared library of ``main``, one of ``files``: from the cache, else compiled for this very machine.

    One in the cache that is empty, cut or changed is compiled anew.

    Raises:
        Refusal: when there is no C compiler, or the cache cannot be written or does not keep what was written.
        ToolError: when the compiler does not compile the files, or exceeds its time.
    """
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        raise Refusal(f"The emulator needs a C compiler, but PATH has none of {', '.join(COMPILERS)}; install one (on "
                      "Debian: apt-get install gcc libc6-dev)")
    store = cache.store("c")
    made = store / f"{_key(compiler, files, main)}.so"
    if not cache.damage(made):
        os.utime(made)
        return made
    discard(made)
    with temporaries.folder() as folder:
        for name, text in files.items():
            (folder / name).write_text(text, "utf-8")
        fresh = folder / "fresh.so"
        done = child.run([compiler, *STRICT, *FAST, "-shared", "-fPIC", "-o", fresh, folder / main],
                         step=f"compiling {main} of {', '.join(files)}", seconds=SECONDS,
                         environment={**os.environ, "TMPDIR": str(folder)})
        if done.returncode:
            raise ToolError(f"The emulator's C must compile with {compiler}, but it does not "
                            f"({_complaint(done.stderr)}); try another compiler")
        atomic_bytes(made, cache.sealed(fresh.read_bytes()))
    if wrong := cache.damage(made):
        raise Refusal(f"The cache must keep what is written to it, but {made} is {wrong} right after it was compiled; "
                      "name another folder in CIRCULANT_CACHE")
    _prune(store)
    return made


def _key(compiler: str, files: Mapping[str, str], main: str) -> str:
    """A hash of the sources, and of the macros in which a compiler says its version and the machine's abilities."""
    macros = child.run([compiler, *FAST, "-dM", "-E", "-x", "c", os.devnull], step="telling its macros",
                       seconds=child.QUESTION_SECONDS).stdout
    sha = hashlib.sha256()
    for text in (compiler, macros, main, *STRICT, *FAST, *(part for file in sorted(files.items()) for part in file)):
        sha.update(f"{len(text)} {text}".encode())
    return sha.hexdigest()


def _complaint(stderr: str) -> str:
    lines = stderr.strip().splitlines()
    return next((line.strip() for line in lines if "error" in line), lines[-1].strip() if lines else "no message")


def _prune(store: Path) -> None:
    """Keep the libraries that were used last."""
    def used(path: Path) -> float:
        try:
            return path.stat().st_mtime
        except FileNotFoundError:
            return 0.0

    for path in sorted(store.glob("*.so"), key=used, reverse=True)[KEPT:]:
        path.unlink(missing_ok=True)
