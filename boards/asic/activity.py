"""Switching activity: a netlist under Verilator with real sequences, every net counted, every output compared.

Verilator knows no delays, so a net changes once in a cycle at the most. What it does before it settles is not counted.
"""
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from circulant.boards.asic.library import Library
from circulant.boards.asic.netlist import Net, Netlist
from circulant.boards.tools import run
from circulant.sim import artifact, design
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.cosim.toolchain import find
from circulant.sim.design import hashes
from circulant.sim.refusal import ToolError
from circulant.sim.vectors import Vectors

__all__ = ["Activity", "as_design", "counted"]

COUNTER = Path(__file__).with_name("count_toggles.cpp")


@dataclass(frozen=True)
class Activity:
    """Counts of a simulation.

    Parameters:
        cycles: all, from the end of the reset to the last output beat.
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
    with artifact.replaced_folder(out) as fresh:
        for name, data in contents.items():
            (fresh / name).write_bytes(data)
        artifact.write_json(fresh / "manifest.json", design.KIND, design.VERSION,
                            kept | {"verilog": list(contents), "images": [], "files": hashes(contents)})
    return out


def counted(design_folder: Path, work: Path, netlist: Netlist, library: Library, cells: str, *, vectors: Vectors,
            macros: str = "", samples: int = 8) -> Activity:
    """Play the first sequences of ``vectors`` back to back, and count.

    Raises:
        Refusal: when Verilator is missing.
        ToolError: when it fails, or the outputs do not come.
    """
    manifest = Manifest.load(design_folder)
    gates = [nets[0] for instance in netlist.instances.values()
             if (cell := library.cells.get(instance.cell)) and cell.gating
             for pin, nets in instance.pins.items() if pin in cell.outputs]
    gated = set(gates)
    nets: list[Net] = sorted({net for instance in netlist.instances.values()
                   for pin, found in instance.pins.items()
                   if (pin in library.cells[instance.cell].outputs if instance.cell in library.cells
                       else pin == "rd_data") for net in found if isinstance(net, int) and net not in gated})
    work.mkdir(parents=True, exist_ok=True)
    _write(work, netlist, nets, gates)
    (work / "cells.v").write_text(cells + macros)
    played = vectors.first(samples)
    _beats(work, manifest, played)
    toolchain = replace(find(), level="-O0")  # Few cycles are played: what takes time is the compiler.
    shutil.copy(COUNTER, work / "count_toggles.cpp")
    environment = toolchain.environment()
    command = ["env", *(f"{name}={environment[name]}" for name in ("PATH", "MAKEFLAGS", "VERILATOR_ROOT")
                        if name in environment),
               "verilator", "--cc", "--exe", "--build", "-O3", "--x-assign", "fast", "--x-initial", "fast",
               "--no-timing", "-Wno-fatal", "-Wno-lint", "--output-split", "20000", "--top-module", "counted",
               "-Mdir", "objects", "-j", "1", "counted.v", "cells.v", "count_toggles.cpp"]
    run(command, folder=work, step="compiling the netlist for counting")
    outputs = manifest.output
    due = sum(_results(manifest, steps) for steps in played.steps) * outputs.beats
    run([str(work.resolve() / "objects" / "Vcounted"), str(len(nets)), str(len(gates)), str(due),
         str(outputs.beat_bytes)], folder=work, step="simulating the netlist")
    numbers = (work / "counts.txt").read_text().split()
    cycles, counts = int(numbers[0]), [int(each) for each in numbers[2:]]
    words, wrong = _compared(work, manifest, played)
    return Activity(cycles, len(played), words, wrong, toggles=dict(zip(nets, counts[:len(nets)], strict=True)),
                    pulses=dict(zip(gates, counts[len(nets):], strict=True)))


def _results(manifest: Manifest, steps: int) -> int:
    """Output vectors of a sequence."""
    body = design.read(manifest.folder)
    if body["output"]["per"] == "step":
        return int(steps)
    return int(body["output"].get("vectors", 1))


def _write(work: Path, netlist: Netlist, nets: list[Net], gates: list[Net]) -> None:
    """The netlist as the module ``counted``, with every net at two more ports."""
    ports = netlist.ports | {"nets": ("output", nets or ["0"]), "gates": ("output", gates or ["0"])}
    Netlist("counted", ports, netlist.instances, netlist.names).write(work / "counted.v")


def _beats(work: Path, manifest: Manifest, played: Vectors) -> None:
    lines = []
    for x, steps in zip(played.inputs, played.steps, strict=True):
        values = np.asarray(x, np.int64)
        rows = values.reshape(-1, manifest.input.elements) if values.ndim == 1 else values[:steps].reshape(
            -1, manifest.input.elements)
        beats = manifest.input.pack(rows).reshape(-1, manifest.input.beat_bytes)
        lines += [f"{int(n == len(beats) - 1)}{beat[::-1].tobytes().hex()}" for n, beat in enumerate(beats)]
    (work / "beats.txt").write_text("\n".join(lines) + "\n")


def _compared(work: Path, manifest: Manifest, played: Vectors) -> tuple[int, int]:
    """Output words and those that differ.

    Raises:
        ToolError: when fewer beats came than are due.
    """
    port = manifest.output
    got = [bytes.fromhex(line)[::-1] for line in (work / "outputs.txt").read_text().split()]
    golden: list[NDArray[np.int64]] = []
    each_step = design.read(manifest.folder)["output"]["per"] == "step"
    for y, steps in zip(played.outputs, played.steps, strict=True):
        values = np.asarray(y, np.int64)
        golden.append((values[:steps] if each_step else values).reshape(-1, port.elements))
    wanted = np.concatenate(golden)
    if len(got) != len(wanted) * port.beats:
        raise ToolError(f"The netlist must give {len(wanted) * port.beats} output beats, but {len(got)} came; report "
                        "it with the library")
    beats = np.frombuffer(b"".join(got), np.uint8).reshape(-1, port.beats, port.beat_bytes)
    found = port.unpack(beats)[:, :port.elements]
    return wanted.size, int((found != wanted).sum())
