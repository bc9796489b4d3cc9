"""What goes into the simulator's process and what comes out of it: files of the run folder."""
import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from circulant.sim import artifact
from circulant.sim.cosim.plan import Run

__all__ = ["Job", "Outcome", "Recording"]


@dataclass(frozen=True, eq=False)
class Job:
    """Parameters:
        input, output: prefixes of the ports.
        streams: a sequence is that many interleaved ones, a vector of each in turn. tlast is set on the last beat of
            the last vector of each of them.
        output_beats, output_bytes: beats that a sequence gives, bytes of a beat.
        input_vectors, output_vectors: how many a sequence takes and gives.
        patience: cycles without a beat after which the circuit counts as stuck.
        beats: (sequences, beats, bytes), little-endian.
        config: signals of the configuration port, see `Manifest`.
        scripts: operations (n, 4) of that port, as `circulant.sim.configuration.Operation` has them.
    """

    clock: str
    reset: str
    input: str
    output: str
    output_beats: int
    output_bytes: int
    input_vectors: int
    output_vectors: int
    patience: int
    streams: int
    runs: tuple[Run, ...]
    beats: NDArray[np.uint8]
    config: dict[str, str] = field(default_factory=dict)
    scripts: tuple[NDArray[np.int64], ...] = ()

    def due(self, run: Run) -> int:
        """Output beats of a run."""
        return 0 if run.silent else len(run.sequences) * self.output_beats

    def last_beats(self, beats: int, vectors: int) -> NDArray[np.bool_]:
        """Which of a sequence's ``beats``, those of its ``vectors``, carry tlast."""
        each = beats // vectors
        place = np.arange(1, beats + 1)
        return np.asarray((place % each == 0) & (place > beats - self.streams * each))

    def save(self, folder: Path) -> None:
        body = {name: value for name, value in vars(self).items() if name not in ("beats", "scripts")}
        body["runs"] = [asdict(run) for run in self.runs]
        (folder / "job.json").write_text(json.dumps(body))
        np.save(folder / "beats.npy", self.beats)
        np.savez(folder / "scripts.npz", *self.scripts)

    @classmethod
    def load(cls, folder: Path) -> "Job":
        body = json.loads((folder / "job.json").read_text())
        runs = tuple(Run(**run | {name: tuple(run[name]) for name in ("sequences", "interrupted")})
                     for run in body.pop("runs"))
        with np.load(folder / "scripts.npz") as scripts:
            return cls(runs=runs, beats=np.load(folder / "beats.npy"), scripts=tuple(scripts.values()), **body)


@dataclass(frozen=True, eq=False)
class Recording:
    """The beats of one run.

    Parameters:
        accepted: cycle of each input beat.
        cycles, data, last: cycle, bytes (beats, bytes) and tlast of each output beat.
        read: words that its script read.
    """

    accepted: NDArray[np.int64]
    cycles: NDArray[np.int64]
    data: NDArray[np.uint8]
    last: NDArray[np.bool_]
    read: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(frozen=True, eq=False)
class Outcome:
    """Parameters:
        recordings: one per run, up to the one with the fault (which has none if it broke before its first beat).
        fault: the broken stream rule (kind, run, cycle), or None.
        cycles: all that were simulated.
        seconds: of the simulator's own program alone, without its start; 0 of the harness.
    """

    recordings: tuple[Recording, ...]
    fault: tuple[str, int, int] | None
    cycles: int
    seconds: float = 0.0

    FILE = "outcome.npz"

    def then(self, other: "Outcome") -> "Outcome":
        """This one and then that of further runs."""
        fault = other.fault and (other.fault[0], other.fault[1] + len(self.recordings), other.fault[2])
        return Outcome((*self.recordings, *other.recordings), self.fault or fault, self.cycles + other.cycles,
                       self.seconds + other.seconds)

    def save(self, folder: Path) -> None:
        arrays = {f"{name} {i}": array for i, recording in enumerate(self.recordings)
                  for name, array in vars(recording).items()}
        artifact.write_npz(folder / self.FILE, "circulant-outcome", 1, arrays,
                           runs=len(self.recordings), fault=self.fault, cycles=self.cycles)

    @classmethod
    def load(cls, folder: Path) -> "Outcome":
        arrays, meta = artifact.read_npz(folder / cls.FILE, "circulant-outcome", 1)
        names = [field.name for field in fields(Recording)]
        recordings = tuple(Recording(*(arrays[f"{name} {i}"] for name in names)) for i in range(meta["runs"]))
        return cls(recordings, meta["fault"] and tuple(meta["fault"]), meta["cycles"])
