"""A circuit under Verilator with wrong bits in its memory images: what comes out, beside what golden says.

The circuit is compiled once; images are read when a simulation starts, so that each fault costs a simulation alone.
"""
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from circulant.sim.arith.fixed import Integers
from circulant.sim.cosim import stimuli
from circulant.sim.cosim.build import Build, build
from circulant.sim.cosim.job import Job, Outcome, Played
from circulant.sim.cosim.judge import check
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.cosim.simulate import Progress, drive, job_of
from circulant.sim.cosim.toolchain import find
from circulant.sim.cosim.verification import played_of
from circulant.sim.files import temporaries
from circulant.sim.refusal import Refusal
from circulant.sim.vectors import Vectors

__all__ = ["ENDS", "FaultBench", "FaultRun"]

ENDS = ("masked", "wrong", "hang", "broken")
"""How a run with faults ends: every output as without them; some others; no beat any more; a rule of a stream broken,
which whoever takes the outputs can see."""


class FaultRun(NamedTuple):
    """A run with faults.

    Parameters:
        end: one of `ENDS`.
        differing: output words that differ from those expected, missing ones too.
        words: that were expected.
        cycles: that it took.
        corrected: cycles in which protected memories put a word right.
        uncorrected: whether they said that one stays wrong.
    """

    end: str
    differing: int
    words: int
    cycles: int = 0
    corrected: int = 0
    uncorrected: bool = False

    @property
    def said(self) -> bool:
        """Whether protected memories said that a word was wrong."""
        return bool(self.corrected) or self.uncorrected


@dataclass(frozen=True, eq=False)
class FaultBench:
    """The simulator of a design, and the sequences that each run plays, back to back after a reset.

    Parameters:
        built: the simulator, which the cache keeps as long as this.
        true: outputs without faults.
    """

    manifest: Manifest
    built: Build
    true: Vectors
    patience: int

    @classmethod
    def of(cls, folder: str | Path, vectors: Vectors, *, progress: Progress | None = None, patience: int = 20_000,
           registers: bool = False) -> "FaultBench":
        """The bench of the design in ``folder``.

        Parameters:
            vectors: of the network that it was made from.
            patience: cycles without a beat after which the circuit hangs.
            registers: whether bits of registers can be flipped.

        Raises:
            Refusal: as `circulant.sim.cosim.verify`, and when the design has several inputs or outputs.
            ToolError: likewise.
        """
        manifest, tell = Manifest.load(folder), progress or (lambda stage, done, total: None)
        if manifest.more_inputs or manifest.more_outputs:
            raise Refusal(f"Faults are played in a design with one input and one output, but {manifest.folder} has "
                          "more; give them to the golden model alone")
        played_of(manifest, vectors)
        tell("build", 0, 1)
        built = build(manifest, find(), registers=registers, poll=lambda: tell("build", 0, 1))
        tell("build", 1, 1)
        return cls(manifest, built, vectors, patience)

    def play(self, images: Mapping[str, str], expected: Integers | None = None,
             flip: tuple[str, int, int] | None = None) -> FaultRun:
        """A run with other images.

        Parameters:
            images: texts of those that differ from the design's, by file name.
            expected: outputs of the golden model with the same faults; None where it has none such.
            flip: a register's path, its bit, and the cycle behind whose edge it is flipped.

        Raises:
            Refusal: when an image is none of the design's.
        """
        names = {image.name for image in self.manifest.images}
        if strange := sorted(images.keys() - names):
            raise Refusal(f"The images of a run must be of the design's, {', '.join(sorted(names))}, not {strange[0]}")
        true = played_of(self.manifest, self.true)
        wanted = true if expected is None else played_of(self.manifest, replace(self.true, outputs=expected))
        job = job_of(self.manifest, (stimuli.Run("faults", tuple(range(len(true)))),), true, self.patience)
        with temporaries.folder() as folder:
            for name, text in images.items():
                (folder / name).write_text(text)
            manifest = replace(self.manifest, images=tuple(
                folder / image.name if image.name in images else image for image in self.manifest.images))
            seen: list[int] = []
            plusargs = () if flip is None else ("+flip={},{},{}".format(*flip),)
            outcome = drive(manifest, find(), self.built.folder, job, lambda stage, done, total: None,
                            plusargs=plusargs, look=lambda at: seen.extend(_seen(at)))
        if seen[1] and outcome.fault and outcome.fault[0] == "flags":  # It says that a word stays wrong, as it should.
            outcome = replace(outcome, fault=None)
        return self._judged(job, outcome, true, wanted)._replace(
            cycles=outcome.cycles, corrected=seen[0], uncorrected=bool(seen[1]))

    def _judged(self, job: Job, outcome: Outcome, true: Played, wanted: Played) -> FaultRun:
        port, fault = self.manifest.output, outcome.fault
        found, due = check.compare(job, outcome, port, wanted), sum(map(len, wanted.outputs)) * port.elements
        if fault is not None and fault[0] == "stuck":
            end = "hang"
        elif fault is not None or check.broken_rule(job, outcome, port):
            end = "broken"
        else:
            end = "wrong" if check.compare(job, outcome, port, true).mismatches else "masked"
        return FaultRun(end, found.mismatches + due - found.words, due)


def _seen(folder: Path) -> list[int]:
    """Counts of what protected memories said, from the simulator's own program; nothing where it did not end."""
    file = folder / "seen"
    return [int(each) for each in file.read_text().split()] if file.exists() else []
