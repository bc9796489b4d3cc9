"""Finds the first value inside a circuit that differs from the golden model."""
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from circulant.sim.arith.fixed import Format, Integers
from circulant.sim.cosim import icarus, stimuli
from circulant.sim.cosim.build import build
from circulant.sim.cosim.diverge.observe import blocks, instrumented, read
from circulant.sim.cosim.diverge.taps import Signal, Tap, taps_of
from circulant.sim.cosim.job import Job, Outcome, Played
from circulant.sim.cosim.judge.check import Mismatch, compare, differing
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.cosim.simulate import drive, job_of, simulate
from circulant.sim.cosim.toolchain import find
from circulant.sim.cosim.verification import planned
from circulant.sim.document import Document
from circulant.sim.files import temporaries
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal
from circulant.sim.vectors import Vectors

__all__ = ["Divergence", "diverging", "first_difference", "locate"]



@dataclass(frozen=True)
class Divergence:
    """The first block of values that a circuit does not have as the golden model has it.

    Parameters:
        sequence: of the data; ``step`` of it, of a backward layer counted from the end, of images the pixel.
        unit: of the layer, one of `circulant.sim.cosim.diverge.taps.UNITS`.
        tensor: the golden model's name of it.
        element: place in the vector of that step; of spectra block by block.
        expected, got: integers of ``format``; what the circuit has instead is the nearest of what it has besides.
        signal: "module.name" in the Verilog.
        cycle: rising edges from the start of the replay, at which the circuit has ``got``.
        waves: all signals of the replay.
    """

    sequence: int
    layer: str
    step: int
    unit: str
    tensor: str
    element: int
    expected: int
    got: int
    format: Format
    signal: str
    cycle: int
    run: str
    waves: Path | None = None

    def as_json(self) -> Document:
        """Also both integers in binary and as reals."""
        width, found = self.format.width, asdict(self) | {"waves": None if self.waves is None else str(self.waves)}
        for name, value in (("expected", self.expected), ("got", self.got)):
            found |= {f"{name}_binary": f"{value & (1 << width) - 1:0{width}b}",
                      f"{name}_real": float(self.format.real(value))}
        return found

    def __str__(self) -> str:
        width = self.format.width
        expected, got = (f"{value} ({value & (1 << width) - 1:0{width}b}, {float(self.format.real(value)):.6g})"
                         for value in (self.expected, self.got))
        return (f"The first difference is in layer {self.layer!r}, step {self.step} of sequence {self.sequence}, "
                f"{self.unit}: element {self.element} of {self.tensor} must be {expected}, but {self.signal} has {got} "
                f"in cycle {self.cycle} of the replay ({self.run})"
                + ("" if self.waves is None else f"; all signals are in {self.waves}"))


def diverging(folder: str | Path, network: Network, vectors: Vectors, found: Mismatch, *,
              drawn: Vectors | None = None, into: Path | None = None) -> Divergence | None:
    """`locate` for a mismatch that `circulant.sim.cosim.verify` found with these vectors: the sequence by itself, else
    the run in which it differed.

    Raises:
        Refusal: as `locate`, and when files do not belong together.
    """
    manifest = Manifest.load(folder)
    if network.many:
        raise Refusal(f"A difference is traced in a network with one input and one output, but {network.name!r} has "
                      f"{len(network.inputs)} and {len(network.outputs)}; trace a part of it")
    played, runs, _ = planned(manifest, vectors, drawn)
    at = int(np.argwhere(played.members == found.sequence)[0][0])
    alone = stimuli.Run("the sequence by itself", (at,))
    return locate(manifest, network, played, [alone, *(run for run in runs if run.name == found.run)],
                  found.sequence, into=into)


def locate(manifest: Manifest, network: Network, played: Played, runs: Sequence[stimuli.Run], sequence: int, *,
           into: Path | None = None) -> Divergence | None:
    """Replay what showed a mismatch, and compare what every unit of every layer has with the golden model.

    A run that only the simulator's own program plays has its sequences many times, between resets or crowded by others:
    then only the cycles count in which the sequence that differs was in the circuit.

    Parameters:
        played: the sequences, of which ``sequence`` is the number in the data of the one that differs.
        runs: tried in turn until that sequence differs; such as it alone, and the run in which it did.
        into: a folder for ``divergence.fst``, or ``.vcd``, all signals of the replay; None for none.

    Returns:
        None where no tapped value differs: the fault is then behind the last tap, or in what no tap sees.

    Raises:
        Refusal: when it does not differ in any of the runs; as `circulant.sim.cosim.build.build`.
    """
    at, turn = (int(place) for place in np.argwhere(played.members == sequence)[0])
    x = played.inputs[at][turn::manifest.streams]
    taps = taps_of([layer.name for layer in network.layers], network.traced(_sample(network, x)),
                   "".join(path.read_text() for path in manifest.verilog))
    with temporaries.folder() as folder:
        shown, files = _instrument(manifest, taps, folder)
        for n, run in enumerate(runs):
            work = folder / str(n)
            work.mkdir()
            job = job_of(shown, (run,), played, None)
            outcome = _play(shown, job, work, waves=into is not None)
            if outcome.fault is None and not compare(job, outcome, shown.output, played).mismatches:
                continue
            seen, before = read(work, files), 0
            if run.driven and outcome.recordings and (
                    cycles := differing(
                        job, run, outcome.recordings[0], shown.output, played=played, sequence=at)) is not None:
                before = cycles[0] - 1
                seen = {signal: words[before:cycles[1]] for signal, words in seen.items()}
            found = first_difference(taps, seen)
            kept = [Path(shutil.copyfile(waves, into / f"divergence{waves.suffix}"))
                    for waves in work.glob("dump.*") if into is not None]
            return found and replace(found, sequence=sequence, cycle=before + found.cycle, run=run.name,
                                     waves=kept[0] if kept else None)
    raise Refusal(f"Sequence {sequence} must differ again in a replay to be traced, but it did not in "
                  f"{', '.join(run.name for run in runs)}; simulate once more")


def _play(manifest: Manifest, job: Job, work: Path, *, waves: bool) -> Outcome:
    """The outcome of a job, whose files stay in ``work``: in Icarus, which writes FST without any library, else in
    Verilator, and there by its own program what no other plays."""
    driven = job.runs[0].driven
    if icarus.available() and not driven:
        return icarus.replay(manifest, job, work, waves=waves)

    def look(folder: Path) -> None:
        for file in (*folder.glob("tap_*.txt"), *folder.glob("dump.*")):
            shutil.copyfile(file, work / file.name)

    built = build(manifest, find(), waves=waves)
    return (drive if driven else simulate)(manifest, find(), built.folder, job, lambda stage, done, total: None,
                                           waves=waves, look=look)


def _sample(network: Network, x: Integers) -> Integers:
    """A played sequence as the golden model takes it, (1, …)."""
    grid = network.flow.grid
    if grid is not None:
        return x.reshape(1, *grid, network.flow.size)
    return x[np.newaxis] if network.sequence else x.reshape(1, network.flow.size)


def _instrument(manifest: Manifest, taps: Sequence[Tap], folder: Path) -> tuple[Manifest, dict[Signal, str]]:
    files: dict[Signal, str] = {}
    text, files = instrumented("".join(path.read_text() for path in manifest.verilog),
                               (signal for tap in taps for signal in tap.signals), manifest.clock)
    path = folder / "traced.v"
    path.write_text(text)
    return replace(manifest, verilog=(path,)), files


def first_difference(taps: Sequence[Tap], seen: dict[Signal, list[int]]) -> Divergence | None:
    """The first block that is nowhere on the signals of its tap: by layer, then by step, then by unit."""
    for layer in dict.fromkeys(tap.layer for tap in taps):
        missing: list[tuple[int, int, Divergence]] = []
        for tap in taps:
            if tap.layer != layer:
                continue
            carried = blocks(tap, seen)
            for step, name, start, values, form in tap.expected():
                if missing and step > min(missing, key=lambda each: each[:2])[0]:
                    break
                if not any((rows[:, :len(values)] == values).all(axis=1).any() for rows in carried.values()):
                    missing.append((step, len(missing), _difference(tap, carried, (step, name, start), values, form)))
                    break
        if missing:
            return min(missing, key=lambda each: each[:2])[2]
    return None


def _difference(tap: Tap, carried: dict[Signal, Integers], place: tuple[int, str, int], values: Integers,
                form: Format) -> Divergence:
    """The nearest of what the signals carry besides golden blocks: that with the fewest other elements, of
    these the one whose values are nearest."""
    step, name, start = place
    right = {tuple(row.tolist()) for _, _, _, row, _ in tap.expected()}
    best: tuple[int, float, int, Signal, Integers] | None = None
    for signal, rows in carried.items():
        few = rows[:, :len(values)]
        unequal, far = (few != values).sum(axis=1), np.abs((few - values).astype(np.float64)).sum(axis=1)
        for cycle in np.lexsort((far, unequal)).tolist():
            if tuple(few[cycle].tolist()) not in right:
                if best is None or (unequal[cycle], far[cycle]) < best[:2]:
                    best = int(unequal[cycle]), float(far[cycle]), cycle, signal, few[cycle]
                break
    if best is None:  # It has nothing but what belongs to other places.
        signal, rows = next(iter(carried.items()))
        best = 0, 0.0, len(rows) - 1, signal, rows[-1, :len(values)]
    _, _, cycle, signal, got = best
    at = int(np.argmax(got != values))
    return Divergence(sequence=0, layer=tap.layer, step=step, unit=tap.unit, tensor=f"{tap.layer}.{name}",
                      element=start + at, expected=int(values[at]), got=int(got[at]), format=form,
                      signal=f"{signal.module}.{signal.name}",
                      cycle=cycle // tap.abreast(signal) + 1, run="")
