"""A design's Verilog compiled with Verilator, kept under the hash of everything that it depends on.

The memory images are no part of it: the circuit reads them when a simulation starts, so a changed weight needs no
compiler.
"""
import fcntl
import hashlib
import os
import re
import shlex
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache as cache_result
from pathlib import Path

from circulant.sim import child
from circulant.sim.cosim import objcache, worker
from circulant.sim.cosim.manifest import INPUTS, Manifest
from circulant.sim.cosim.toolchain import Toolchain
from circulant.sim.files import cache, temporaries
from circulant.sim.files.files import discard, sync
from circulant.sim.files.writing import naming
from circulant.sim.refusal import Refusal, ToolError

__all__ = ["Build", "build"]

KEPT = 20
SECONDS = 3600.0
"""Limit of a build: 2,464 multipliers take two minutes on two idle cores."""
STALE_SECONDS = 24 * 3600

# Registers without a reset and an initial value start at random (the seed is given to each simulation): a circuit that
# counts on zeros is found out. Only the ports are visible from outside; --public-flat-rw on every signal, as cocotb's
# runner has it, would forbid most optimisation (on 2,464 multipliers it simulates 4 times slower).
# Where a bit of any register is to be flipped, it is left out.
ARGUMENTS = ("--no-public-flat-rw", "--no-timing", "--x-assign", "unique", "--x-initial", "unique", "-Wno-fatal", "-O3")

# A small design as one C++ file, without Verilator's own precompiled headers, is compiled sooner (540 kB of Verilog:
# 9.9 s of a core instead of 14.0, with -O0 3.3 instead of 9.8); with a large one (2,464 multipliers) Verilator itself
# would then take minutes instead of seconds.
SMALL_BYTES = 800_000
UNSPLIT = ("--output-split", "400000")

FLAGS = {"malformed": "top->malformed == (misplaced)", "overflow": "!top->overflow", "uncorrected": "!top->uncorrected"}
"""Ports that say of what came, or was read, that something was wrong with it, and what they must be."""

# The program that plays beats back to back comes before cocotb's main, in the same executable.
DRIVE, DESIGN, *HEADERS = (Path(__file__).with_name(name)
                           for name in ("drive.cpp", "design.cpp", "design.h", "stalls.h", "waves.h"))
WRAPPED = ("-LDFLAGS", "-Wl,--wrap=main")

FST = ("lz4.h", "zlib.h")
"""Headers that Verilator's FST writer includes; without them the waves are a VCD."""


@dataclass(frozen=True)
class Build:
    """A compiled simulator, which stays in the cache as long as anybody has this object.

    Parameters:
        folder: holds the executable, which has the name of the top module.
        seconds: what this call took.
        cached: whether it was there already, and whole.
    """

    folder: Path
    seconds: float
    cached: bool


def build(manifest: Manifest, toolchain: Toolchain, *, waves: bool = False, registers: bool = False,
          poll: Callable[[], None] = lambda: None) -> Build:
    """The simulator of a design: from the cache, else compiled. Calls at the same time compile it once.

    One in the cache that is empty, cut, changed or not executable is compiled anew.

    Parameters:
        waves: whether it can write ``dump.fst``, all signals over time; ``dump.vcd`` where the compiler lacks `FST`.
        registers: whether a bit of any register can be flipped, which makes it several times slower.
        poll: called a few times a second while it compiles.

    Raises:
        Refusal: when the cache cannot be written, or does not keep what was written.
        ToolError: when the Verilog cannot be compiled, or not in its time.
    """
    start = time.monotonic()
    store = cache.store("verilator")
    key = _key(manifest, toolchain, waves, registers)
    entry = store / key
    held = _hold(entry, fcntl.LOCK_SH)
    try:
        with _locked(store / f"{key}.lock"):
            cached = not cache.damage(entry / manifest.top, program=True)
            if cached:
                os.utime(entry)
            else:
                discard(entry)
                _fill(entry, manifest, toolchain, poll, waves=waves, registers=registers)
                if wrong := cache.damage(entry / manifest.top, program=True):
                    raise Refusal(f"The cache must keep what is written to it, but {entry / manifest.top} is {wrong} "
                                  "right after it was compiled; name another folder in CIRCULANT_CACHE")
    except BaseException:
        os.close(held)
        raise
    _prune(store)
    built = Build(entry, time.monotonic() - start, cached)
    weakref.finalize(built, os.close, held)
    return built


@cache_result
def waves_arguments() -> tuple[str, ...]:
    """Verilator's arguments for waves."""
    includes = [word for header in FST for word in ("-include", header)]
    found = child.run(["g++", "-E", "-x", "c++", "-o", os.devnull, *includes, os.devnull],
                      step="telling which headers it has", seconds=child.QUESTION_SECONDS)
    return ("--trace-vcd",) if found.returncode else ("--trace-fst",)


def _key(manifest: Manifest, toolchain: Toolchain, waves: bool, registers: bool) -> str:
    sha = hashlib.sha256()
    for text in (toolchain.fingerprint, *ARGUMENTS[registers:], *_split(manifest), manifest.top, _visible(manifest),
                 *WRAPPED, _ports(manifest), *(file.read_text() for file in (DRIVE, DESIGN, *HEADERS)),
                 *(waves_arguments() if waves else ())):
        sha.update(f"{text}\0".encode())
    for file in manifest.verilog:
        contents = file.read_bytes()
        sha.update(f"{len(contents)}\0".encode())
        sha.update(contents)
    return sha.hexdigest()


def _split(manifest: Manifest) -> tuple[str, ...]:
    return UNSPLIT if sum(file.stat().st_size for file in manifest.verilog) < SMALL_BYTES else ()


def _visible(manifest: Manifest) -> str:
    """The Verilator control file that opens the ports to cocotb."""
    streams = [f"{port.prefix}_t{signal}" for port in (*manifest.inputs, *manifest.outputs)
               for signal in ("data", "valid", "ready", "last")]
    ports = manifest.clock, manifest.reset, *streams, *manifest.config.values()
    return "`verilator_config\n" + "".join(f'public_flat_rw -module "{manifest.top}" -var "{name}"\n' for name in ports)


def _ports(manifest: Manifest) -> str:
    """The header that tells the driving program what the ports are called."""
    idle = " ".join(f"top->{name} = 0;" for what, name in manifest.config.items() if what in INPUTS)
    flags = [right for name, right in FLAGS.items() if name in manifest.flags]
    seen = "counts[0] += top->corrected; counts[1] = top->uncorrected; " if "uncorrected" in manifest.flags else ""
    sources, sinks = (" ".join(f"X({port.prefix})" for port in ports) for ports in (manifest.inputs, manifest.outputs))
    return (f"#define CLOCK {manifest.clock}\n#define RESET {manifest.reset}\n"
            f"#define SOURCES(X) {sources}\n#define SINKS(X) {sinks}\n#define IDLE do {{ {idle} }} while (false)\n"
            f"#define FLAGS_RIGHT(misplaced) ({' && '.join(flags) or 'true'})\n"
            f"#define SEEN(counts) do {{ {seen}}} while (false)\n")


def _fill(entry: Path, manifest: Manifest, toolchain: Toolchain, poll: Callable[[], None], *, waves: bool,
          registers: bool) -> None:
    """Compile in a folder of its own, and move the executable into place, with its hash behind it."""
    staging = Path(tempfile.mkdtemp(prefix=temporaries.prefix(entry.name), dir=entry.parent))
    try:
        with temporaries.folder(_place(entry.parent)) as temporary, naming(temporary):
            executable = _compile(temporary.resolve(), manifest, toolchain, poll, waves=waves, registers=registers)
            (staging / manifest.top).write_bytes(cache.sealed(executable.read_bytes()))
        for path in (staging / manifest.top, staging):
            os.chmod(path, 0o755)
            sync(path)
        os.rename(staging, entry)
        sync(entry.parent)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _place(store: Path) -> Path:
    """A folder to compile in, whose path make takes: it cannot have a space.

    Raises:
        Refusal: when there is none.
    """
    given = Path(tempfile.gettempdir())
    for place in (given, store, Path("/tmp"), Path("/var/tmp")):
        if not re.search(r"[\s#$%:'\"]", str(place.resolve())) and os.access(place, os.W_OK):
            return place
    raise Refusal(f"make needs a temporary folder in a path without spaces, but {str(given)!r} and the cache "
                  f"{str(store)!r} have some; name another one in TMPDIR")


def _compile(folder: Path, manifest: Manifest, toolchain: Toolchain, poll: Callable[[], None], *,
             waves: bool = False, registers: bool = False) -> Path:
    visible = folder / "visible.vlt"
    visible.write_text(_visible(manifest))
    sources = [shutil.copyfile(file, folder / file.name) for file in manifest.verilog]
    (folder / "ports.h").write_text(_ports(manifest))
    drive, design, *_ = (shutil.copyfile(file, folder / file.name) for file in (DRIVE, DESIGN, *HEADERS))
    objects, split = folder / "objects", _split(manifest)
    stand_in = _stand_in(toolchain, *(() if not split else (objcache.WHOLE,)), _main(toolchain), design)
    translate = ["verilator", "-cc", "--exe", "-Mdir", objects, "--top-module", manifest.top, "--vpi",
                 "--public-flat-rw", "--prefix", "Vtop", "-o", manifest.top, "-LDFLAGS", _linked(toolchain),
                 *(["--trace"] if waves else []), *ARGUMENTS[registers:], *split, *WRAPPED,
                 *(waves_arguments() if waves else ()), "--timescale", "1ns/1ps", _main(toolchain), drive,
                 *(() if stand_in else (design,)), visible, *sources]
    make = ["make", "-j", os.cpu_count() or 1, "-C", objects, "-f", "Vtop.mk", f"VM_TRACE={int(waves)}"]
    commands = " && ".join(shlex.join(map(str, each)) for each in (translate, make))
    log = folder / "build.log"
    status = worker.run(["/bin/sh", "-c", commands], "Verilator", folder=folder, log=log,
                        environment=toolchain.environment() | stand_in, poll=poll,
                        step=f"compiling {', '.join(map(str, manifest.verilog))}", seconds=SECONDS)
    executable = objects / manifest.top
    kept = manifest.folder / "build.log"
    if status != 0 or not executable.is_file():
        shutil.copyfile(log, kept)
        raise ToolError(f"The Verilog of {manifest.folder} must compile with {toolchain.simulator}, but it does not "
                        f"({worker.complaint(log)}); see {kept}, and generate the design again")
    kept.unlink(missing_ok=True)
    return executable


def _linked(toolchain: Toolchain) -> str:
    """The linker's arguments for cocotb, as its own runner gives them; importing that takes longer than a link."""
    return f"-Wl,-rpath,{toolchain.libraries} -L{toolchain.libraries} -lcocotbvpi_verilator"


def _main(toolchain: Toolchain) -> Path:
    """The file of cocotb's main."""
    return toolchain.libraries.parent / "share" / "lib" / "verilator" / "verilator.cpp"


def _stand_in(toolchain: Toolchain, *files: str | Path) -> dict[str, str]:
    """The environment in which `circulant.sim.cosim.objcache` stands in for the compiler, and makes one object of the
    files; empty where make cannot call it."""
    tools = toolchain.fingerprint.rpartition("; ")[0]  # How it optimises is in each command, which names an object.
    store = cache.cache_folder() / "objects" / hashlib.sha256(tools.encode()).hexdigest()
    stand_in = Path(__file__).with_name("objcache.py")
    if re.search(r"\s", str(stand_in)):
        return {}
    return {"OBJCACHE": f"python3 -E -S {stand_in}", "CIRCULANT_OBJECTS": str(store),
            "CIRCULANT_JOINED": os.pathsep.join(map(str, files))}


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _hold(entry: Path, how: int) -> int:
    """A lock on an entry, as a file: shared by those who use it, exclusive for the one who removes it.

    Raises:
        BlockingIOError: when ``how`` says not to wait, and another one has it.
    """
    file = os.open(entry.with_name(f"{entry.name}.used"), os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(file, how)
    except BaseException:
        os.close(file)
        raise
    return file


def _prune(store: Path) -> None:
    """Keep the entries that were used last, and those in use; what a build of an earlier version left is removed after
    a day."""
    entries = sorted((path for path in store.iterdir() if path.is_dir() and not path.name.startswith(".")),
                     key=cache.used, reverse=True)
    stale = [path for path in store.glob(".building-*") if time.time() - cache.used(path) > STALE_SECONDS]
    for path in stale:
        shutil.rmtree(path, ignore_errors=True)
    for path in entries[KEPT:]:
        with suppress(BlockingIOError):
            held = _hold(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
            os.close(held)
    names = {path.name for path in entries if path.exists()}
    for lock in (*store.glob("*.lock"), *store.glob("*.used")):
        if lock.stem not in names and time.time() - cache.used(lock) > STALE_SECONDS:
            lock.unlink(missing_ok=True)
