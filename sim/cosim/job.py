"""What goes into the simulator's process and what comes out of it: files of the run folder."""
import json
from dataclasses import asdict, dataclass
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
        beats: (sequences, beats, bytes), little-endian.
        streams: a sequence is that many interleaved ones, a vector of each in turn. tlast is set on the last beat of
            the last vector of each of them.
        output_beats, output_bytes: beats that a sequence gives, bytes of a beat.
        input_vectors, output_vectors: how many a sequence takes and gives.
        patience: cycles without a beat after which the circuit counts as stuck.
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

    def last_beats(self, beats: int, vectors: int) -> NDArray[np.bool_]:
        """Which of a sequence's ``beats``, those of its ``vectors``, carry tlast."""
        each = beats // vectors
        place = np.arange(1, beats + 1)
        return np.asarray((place % each == 0) & (place > beats - self.streams * each))

    def save(self, folder: Path) -> None:
        body = {name: value for name, value in vars(self).items() if name != "beats"}
        body["runs"] = [asdict(run) for run in self.runs]
        (folder / "job.json").write_text(json.dumps(body))
        np.save(folder / "beats.npy", self.beats)

    @classmethod
    def load(cls, folder: Path) -> "Job":
        body = json.loads((folder / "job.json").read_text())
        runs = tuple(Run(**run | {name: tuple(run[name]) for name in ("sequences", "interrupted")})
                     for run in body.pop("runs"))
        return cls(runs=runs, beats=np.load(folder / "beats.npy"), **body)


@dataclass(frozen=True, eq=False)
class Recording:
    """The beats of one run.

    Parameters:
        accepted: cycle of each input beat.
        cycles, data, last: cycle, bytes (beats, bytes) and tlast of each output beat.
    """

    accepted: NDArray[np.int64]
    cycles: NDArray[np.int64]
    data: NDArray[np.uint8]
    last: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Outcome:
    """Parameters:
        recordings: one per run, up to the one with the fault (which has none if it broke before its first beat).
        fault: the broken stream rule (kind, run, cycle), or None.
        cycles: all that were simulated.
    """

    recordings: tuple[Recording, ...]
    fault: tuple[str, int, int] | None
    cycles: int

    FILE = "outcome.npz"

    def save(self, folder: Path) -> None:
        arrays = {f"{name} {i}": array for i, recording in enumerate(self.recordings)
                  for name, array in vars(recording).items()}
        artifact.write_npz(folder / self.FILE, "circulant-outcome", 1, arrays,
                           runs=len(self.recordings), fault=self.fault, cycles=self.cycles)

    @classmethod
    def load(cls, folder: Path) -> "Outcome":
        arrays, meta = artifact.read_npz(folder / cls.FILE, "circulant-outcome", 1)
        recordings = tuple(Recording(*(arrays[f"{name} {i}"] for name in ("accepted", "cycles", "data", "last")))
                           for i in range(meta["runs"]))
        return cls(recordings, meta["fault"] and tuple(meta["fault"]), meta["cycles"])
