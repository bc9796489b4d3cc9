"""Switching activity: a netlist played with real sequences, every net counted, every output compared.

The player evaluates a table for each gate in each cycle: Verilator compiles a netlist of 100,000 cells for the better
part of an hour, and the thousand cycles that are counted here take a second. It knows no delays, so a net changes once
in a cycle at the most; what it does before it settles is not counted.
"""
import hashlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from circulant.boards.asic.cells.library import Library
from circulant.boards.asic.memories import Memory
from circulant.boards.asic.netlist import Net, Netlist
from circulant.boards.asic.power.tables import tables
from circulant.boards.tools import run
from circulant.sim import artifact, design
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.design import hashes
from circulant.sim.files import temporaries
from circulant.sim.files.cache import damage, sealed, store
from circulant.sim.files.writing import replaced_folder
from circulant.sim.refusal import Refusal, ToolError
from circulant.sim.vectors import Vectors

__all__ = ["Activity", "as_design", "compiler", "counted"]

PLAYER = Path(__file__).with_name("play.cpp")


@dataclass(frozen=True)
class Activity:
    """Counts of a simulation.

    Parameters:
        cycles: all, from the end of the reset to the last output beat; or some of those in which nothing comes.
        sequences: that were played, back to back.
        words, mismatches: output words that were compared with the golden model, and those that differ.
        toggles: of each net.
        pulses: of each gated clock.
    """

    cycles: int
    sequences: int
    words: int
    mismatches: int
    toggles: dict[Net, int]
    pulses: dict[Net, int]


def as_design(design_folder: Path, out: Path, netlist: Path, cells: str, macros: str = "") -> Path:
    """A folder that `circulant.sim.cosim.verify` takes: the netlist in place of the design's Verilog."""
    described = design.read(design_folder)
    contents = {"netlist.v": netlist.read_bytes(), "cells.v": cells.encode()}
    if macros:
        contents["macros.v"] = macros.encode()
    kept = {key: value for key, value in described.items() if key not in ("hash", "kind", "version", "files", "format")}
    with replaced_folder(out) as fresh:
        for name, data in contents.items():
            (fresh / name).write_bytes(data)
        artifact.write_json(fresh / "manifest.json", design.KIND, design.VERSION,
                            kept | {"verilog": list(contents), "images": [], "files": hashes(contents)})
    return out


def counted(design_folder: Path, work: Path, netlist: Netlist, library: Library, *, vectors: Vectors,
            memories: Sequence[Memory] = (), samples: int = 8) -> tuple[Activity, Activity]:
    """Play the first sequences of ``vectors`` back to back, and count; then once more without input, at rest.

    Raises:
        Refusal: when g++ is missing, or a cell cannot be played.
        ToolError: when the outputs do not come.
    """
    manifest = Manifest.load(design_folder)
    program = _player()
    work.mkdir(parents=True, exist_ok=True)
    made = tables(netlist, library, list(memories))
    (work / "netlist.txt").write_text(made.text())
    played = vectors.first(samples)
    _beats(work, manifest, played)
    outputs = manifest.output
    due = sum(_results(manifest, steps) for steps in played.steps) * outputs.beats
    run([str(program), str(due)], folder=work.resolve(), step="playing the netlist")
    words, wrong = _compared(work, manifest, played)
    counts = [int(each) for each in (work / "counts.txt").read_text().split()]
    half = len(counts) // 2

    def activity(cycles: int, *counts: int) -> Activity:
        return Activity(cycles, len(played), words, wrong, toggles={
            net: counts[number] for net, number in made.number.items() if isinstance(net, int) and net >= 0},
            pulses=dict(zip(made.clocks, counts[len(made.number):], strict=True)))

    return activity(*counts[:half]), activity(*counts[half:])


def compiler() -> str:
    """The compiler of the player.

    Raises:
        Refusal: when it is not installed.
    """
    if found := shutil.which("g++"):
        return found
    raise Refusal("Energy from activity needs g++, but PATH has none; install it (on Debian: apt-get install g++), or "
                  "leave out the energy with --samples 0")


def _player() -> Path:
    """The compiled player, kept under the hash of what it is made from."""
    key = hashlib.sha256(PLAYER.read_bytes()).hexdigest()
    folder = store("player")
    kept = folder / key
    if damage(kept, program=True):
        with temporaries.folder(folder) as temporary:
            made = temporary / "play"
            run([compiler(), "-std=c++17", "-O2", "-o", str(made), str(PLAYER)], folder=temporary,
                step="compiling the player of netlists")
            made.write_bytes(sealed(made.read_bytes()))
            made.chmod(0o755)
            os.replace(made, kept)
    return kept


def _results(manifest: Manifest, steps: int) -> int:
    """Output vectors of a sequence."""
    body = design.read(manifest.folder)
    if body["output"]["per"] == "step":
        return int(steps)
    return int(body["output"].get("vectors", 1))


def _beats(work: Path, manifest: Manifest, played: Vectors) -> None:
    lines = []
    for x, steps in zip(played.inputs, played.steps, strict=True):
        values = np.asarray(x, np.int64)
        rows = values.reshape(-1, manifest.input.elements) if values.ndim == 1 else values[:steps].reshape(
            -1, manifest.input.elements)
        beats = manifest.input.pack(rows).reshape(-1, manifest.input.beat_bytes)
        bits = np.unpackbits(beats, axis=1, bitorder="little")
        lines += [f"{int(n == len(beats) - 1)}{''.join(map(str, beat))}" for n, beat in enumerate(bits.tolist())]
    (work / "beats.txt").write_text("\n".join(lines) + "\n")


def _compared(work: Path, manifest: Manifest, played: Vectors) -> tuple[int, int]:
    """Output words and those that differ.

    Raises:
        ToolError: when fewer beats came than are due.
    """
    port = manifest.output
    got = (work / "outputs.txt").read_text().split()
    golden: list[NDArray[np.int64]] = []
    each_step = design.read(manifest.folder)["output"]["per"] == "step"
    for y, steps in zip(played.outputs, played.steps, strict=True):
        values = np.asarray(y, np.int64)
        golden.append((values[:steps] if each_step else values).reshape(-1, port.elements))
    wanted = np.concatenate(golden)
    if len(got) != len(wanted) * port.beats:
        raise ToolError(f"The netlist must give {len(wanted) * port.beats} output beats, but {len(got)} came; report "
                        "it with the library")
    bits = np.array([list(map(int, line)) for line in got], np.uint8)
    beats = np.packbits(bits, axis=1, bitorder="little").reshape(-1, port.beats, port.beat_bytes)
    found = port.unpack(beats)[:, :port.elements]
    return wanted.size, int((found != wanted).sum())
