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

from circulant.boards.asic.cells.library import Library
from circulant.boards.asic.memories import Memory
from circulant.boards.asic.netlist import Net, Netlist
from circulant.boards.asic.power.tables import tables
from circulant.boards.tools import run
from circulant.sim import artifact, design
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.cosim.simulate import job_of
from circulant.sim.cosim.stimuli import Run
from circulant.sim.cosim.verification import played_of
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
    played = played_of(manifest, vectors.first(samples))
    job = job_of(manifest, (Run("back to back", tuple(range(len(played)))),), played, None)
    (work / "beats.txt").write_text("".join(
        f"{int(last)}{''.join(map(str, bits))}\n" for n in range(len(played))
        for beats, marks in (job.offered(n),) for last, bits in zip(
            marks, np.unpackbits(beats, axis=1, bitorder="little").tolist(), strict=True)))
    due, port = job.due(job.runs[0]), manifest.output
    run([str(program), str(due)], folder=work.resolve(), step="playing the netlist")
    got = (work / "outputs.txt").read_text().split()
    if len(got) != due:
        raise ToolError(f"The netlist must give {due} output beats, but {len(got)} came; report it with the library")
    beats = np.packbits(np.array([list(map(int, line)) for line in got], np.uint8), axis=1, bitorder="little")
    found = port.unpack(beats.reshape(-1, port.beats, port.beat_bytes))[:, :port.elements]
    wanted = np.concatenate(played.outputs)
    counts = [int(each) for each in (work / "counts.txt").read_text().split()]
    half = len(counts) // 2

    def activity(cycles: int, *counts: int) -> Activity:
        return Activity(cycles, len(played), wanted.size, int((found != wanted).sum()), toggles={
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
