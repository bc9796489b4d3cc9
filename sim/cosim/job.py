"""Input and output of the simulator's process: files of the run folder."""
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from circulant.sim import artifact
from circulant.sim.cosim.frames import Frame, misplaced
from circulant.sim.cosim.stimuli import Run

__all__ = ["Job", "Outcome", "Played", "Recording"]


@dataclass(frozen=True, eq=False)
class Played:
    """Sequences as a circuit takes them, each by itself or several of one length interleaved, a vector of each in turn.

    Parameters:
        inputs, outputs: of each, its vectors (vectors, elements) in their order.
        members: (played ones, streams), the places of their sequences in the data.
    """

    inputs: tuple[NDArray[np.int64], ...]
    outputs: tuple[NDArray[np.int64], ...]
    members: NDArray[np.int64]

    @classmethod
    def of(cls, inputs: NDArray[np.int64], outputs: NDArray[np.int64], lengths: NDArray[np.int64] | None = None, *,
           streams: int = 1) -> "Played":
        """Sequences (N, T, elements) with outputs (N, T, elements), or any number of them for each that is the same.

        Parameters:
            lengths: (N,), the steps of each; None where all have T. Interleaved ones are then in the order of these.
            streams: how many are interleaved; the first ones of a length fill up its last group.
        """
        count, steps = inputs.shape[:2]
        every = np.full(count, steps) if lengths is None else lengths
        groups = []
        for length in np.unique(every) if streams > 1 else [None]:
            some = np.arange(count) if length is None else np.flatnonzero(every == length)
            groups.append(some[np.arange(-(-len(some) // streams) * streams) % len(some)].reshape(-1, streams))
        members = np.concatenate(groups)
        each = every if outputs.shape[1] == steps else np.full(count, outputs.shape[1])

        def turns(vectors: NDArray[np.int64], group: NDArray[np.int64], length: int) -> NDArray[np.int64]:
            return vectors[group, :length].swapaxes(0, 1).reshape(length * streams, -1)

        return cls(tuple(turns(inputs, group, every[group[0]]) for group in members),
                   tuple(turns(outputs, group, each[group[0]]) for group in members), members)

    def __len__(self) -> int:
        return len(self.inputs)

    def then(self, other: "Played") -> "Played":
        """These and behind them others."""
        return Played(self.inputs + other.inputs, self.outputs + other.outputs,
                      np.concatenate([self.members, other.members]))


@dataclass(frozen=True, eq=False)
class Job:
    """Parameters:
        input, output: prefixes of the ports.
        streams: a sequence is that many interleaved ones, a vector of each in turn. tlast is set on the last beat of
            the last vector of each of them.
        input_beats, output_beats, output_bytes: beats of a vector that goes in, of one that comes out, bytes of these.
        steps, results: by sequence, how many vectors it takes and gives.
        over_images: a sequence is a sample, of which each pixel is a vector.
        stepwise: each vector is a sample, whose result comes before the next one does; else a whole sequence is.
        latency: planned cycles from the last vector of a sequence to its outputs; 0 where it is not known.
        patience: cycles without a beat after which the circuit counts as stuck.
        beats: (beats of all sequences, bytes), little-endian.
        config: signals of the configuration port, see `Manifest`.
        scripts: operations (n, 4) of that port, as `circulant.sim.configuration.Operation` has them.
    """

    clock: str
    reset: str
    input: str
    output: str
    input_beats: int
    output_beats: int
    output_bytes: int
    steps: tuple[int, ...]
    results: tuple[int, ...]
    patience: int
    streams: int
    runs: tuple[Run, ...]
    beats: NDArray[np.uint8]
    config: dict[str, str] = field(default_factory=dict)
    scripts: tuple[NDArray[np.int64], ...] = ()
    over_images: bool = False
    stepwise: bool = False
    latency: int = 0

    def frames(self, run: Run) -> Iterator[Frame]:
        """The input beats of each sequence of a run, and which of them carry tlast."""
        for n, sequence in enumerate(run.sequences):
            beats, last = self.offered(sequence)
            late = bool(n % 2) and not run.moments  # All sequences of a sweep are its first one.
            yield (beats, last & run.ends) if not run.misplaced else misplaced(
                (beats, last), each=None if self.over_images else self.input_beats, late=late)

    def sent(self, sequences: Sequence[int]) -> NDArray[np.int64]:
        """Input beats up to the end of each of these, one behind the other, whose tlast is not misplaced."""
        return np.cumsum([self.steps[i] for i in sequences], dtype=np.int64) * self.input_beats

    def given(self, sequences: Sequence[int]) -> NDArray[np.int64]:
        """Output beats up to the end of each of these, one behind the other."""
        return np.cumsum([self.results[i] for i in sequences], dtype=np.int64) * self.output_beats

    def sample(self, run: Run) -> tuple[int, int]:
        """Beats of a sample and of its result, in a run of one sequence again and again."""
        one = run.sequences[0]
        vectors, results = (1, 1) if self.stepwise else (self.steps[one], self.results[one])
        return vectors * self.input_beats, results * self.output_beats

    def due(self, run: Run) -> int:
        """Output beats of a run."""
        return 0 if run.silent else int(self.given(run.sequences)[-1])

    def offered(self, sequence: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """The input beats of a sequence, and which of them carry tlast."""
        end = self._ends[sequence]
        vectors = self.steps[sequence]
        return self.beats[end - vectors * self.input_beats:end], self.last_beats(vectors, self.input_beats)

    def last_beats(self, vectors: int, each: int) -> NDArray[np.bool_]:
        """Which beats of so many vectors, of ``each`` beats, carry tlast."""
        place = np.arange(1, vectors * each + 1)
        return np.asarray((place % each == 0) & (place > (vectors - self.streams) * each))

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        return self.sent(range(len(self.steps)))

    def save(self, folder: Path) -> None:
        body = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in ("beats", "scripts")}
        body["runs"] = [asdict(run) for run in self.runs]
        (folder / "job.json").write_text(json.dumps(body))
        np.save(folder / "beats.npy", self.beats)
        np.savez(folder / "scripts.npz", *self.scripts)

    @classmethod
    def load(cls, folder: Path) -> "Job":
        body = json.loads((folder / "job.json").read_text())
        runs = tuple(Run(**run | {name: tuple(run[name]) for name in ("sequences", "interrupted", "moments")})
                     for run in body.pop("runs"))
        body |= {name: tuple(body[name]) for name in ("steps", "results")}
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
