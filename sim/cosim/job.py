"""Input and output of the simulator's process: files of the run folder."""
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from circulant.sim import artifact
from circulant.sim.cosim.frames import Frame, misplaced
from circulant.sim.cosim.stimuli import Run

__all__ = ["Job", "Outcome", "Played", "Recording", "Side"]


@dataclass(frozen=True, eq=False)
class Played:
    """Sequences as a circuit takes them, each by itself or several of one length interleaved, a vector of each in turn.

    Parameters:
        inputs, outputs: of each, its vectors (vectors, elements) in their order.
        members: (played ones, streams), the places of their sequences in the data.
        more_inputs, more_outputs: of each further port, as of the first one.
    """

    inputs: tuple[NDArray[np.int64], ...]
    outputs: tuple[NDArray[np.int64], ...]
    members: NDArray[np.int64]
    more_inputs: tuple[tuple[NDArray[np.int64], ...], ...] = ()
    more_outputs: tuple[tuple[NDArray[np.int64], ...], ...] = ()

    @classmethod
    def of(cls, inputs: NDArray[np.int64], outputs: NDArray[np.int64], lengths: NDArray[np.int64] | None = None, *,
           streams: int = 1, more_inputs: Sequence[NDArray[np.int64]] = (),
           more_outputs: Sequence[NDArray[np.int64]] = ()) -> "Played":
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

        def turns(vectors: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
            each = every if vectors.shape[1] == steps else np.full(count, vectors.shape[1])
            return tuple(vectors[group, :each[group[0]]].swapaxes(0, 1).reshape(each[group[0]] * streams, -1)
                         for group in members)

        return cls(turns(inputs), turns(outputs), members, tuple(map(turns, more_inputs)),
                   tuple(map(turns, more_outputs)))

    def __len__(self) -> int:
        return len(self.inputs)

    def then(self, other: "Played") -> "Played":
        """These and behind them others."""
        return Played(self.inputs + other.inputs, self.outputs + other.outputs,
                      np.concatenate([self.members, other.members]),
                      *(tuple(one + two for one, two in zip(mine, its, strict=True)) for mine, its in (
                          (self.more_inputs, other.more_inputs), (self.more_outputs, other.more_outputs))))

    def given(self, port: int) -> "Played":
        """The same with the outputs of a port, counted from 0, in the place of the first one's."""
        return replace(self, outputs=self.more_outputs[port - 1]) if port else self


@dataclass(frozen=True, eq=False)
class Side:
    """A further port of a circuit.

    Parameters:
        prefix: of its signals.
        beats, bytes: beats of a vector, bytes of a beat.
        vectors: by sequence, how many vectors it takes or gives.
        data: (beats of all sequences, bytes) that go in; none of an output.
    """

    prefix: str
    beats: int
    bytes: int
    vectors: tuple[int, ...]
    data: NDArray[np.uint8] = field(default_factory=lambda: np.empty((0, 0), np.uint8))


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
        more_inputs, more_outputs: further ports; all that is said of a sequence holds for its vectors on each of them.
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
    more_inputs: tuple[Side, ...] = ()
    more_outputs: tuple[Side, ...] = ()

    @cached_property
    def sources(self) -> tuple["Job", ...]:
        """For each input the same job as if that was the only one."""
        alone = replace(self, more_inputs=(), more_outputs=())
        return (alone, *(replace(alone, input=side.prefix, input_beats=side.beats, steps=side.vectors, beats=side.data)
                         for side in self.more_inputs))

    @cached_property
    def sinks(self) -> tuple["Job", ...]:
        """For each output the same job as if that was the only one."""
        alone = replace(self, more_inputs=(), more_outputs=())
        return (alone, *(replace(alone, output=side.prefix, output_beats=side.beats, output_bytes=side.bytes,
                                 results=side.vectors) for side in self.more_outputs))

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
        for name in ("more_inputs", "more_outputs"):
            body[name] = [[side.prefix, side.beats, side.bytes, side.vectors] for side in getattr(self, name)]
        (folder / "job.json").write_text(json.dumps(body))
        np.save(folder / "beats.npy", self.beats)
        np.savez(folder / "more.npz", *(side.data for side in self.more_inputs))
        np.savez(folder / "scripts.npz", *self.scripts)

    @classmethod
    def load(cls, folder: Path) -> "Job":
        body = json.loads((folder / "job.json").read_text())
        runs = tuple(Run(**run | {name: tuple(run[name]) for name in ("sequences", "interrupted", "moments")})
                     for run in body.pop("runs"))
        body |= {name: tuple(body[name]) for name in ("steps", "results")}
        with np.load(folder / "more.npz") as more:
            taken = [(*side, data) for side, data in zip(body["more_inputs"], more.values(), strict=True)]
        for name, sides in (("more_inputs", taken), ("more_outputs", body["more_outputs"])):
            body[name] = tuple(Side(prefix, beats, width, tuple(vectors), *data)
                               for prefix, beats, width, vectors, *data in sides)
        with np.load(folder / "scripts.npz") as scripts:
            return cls(runs=runs, beats=np.load(folder / "beats.npy"), scripts=tuple(scripts.values()), **body)


@dataclass(frozen=True, eq=False)
class Recording:
    """The beats of one run.

    Parameters:
        accepted: cycle of each input beat.
        cycles, data, last: cycle, bytes (beats, bytes) and tlast of each output beat.
        read: words that its script read.
        also: the beats of each further port: of the n-th input those accepted, of the n-th output the others.
    """

    accepted: NDArray[np.int64]
    cycles: NDArray[np.int64]
    data: NDArray[np.uint8]
    last: NDArray[np.bool_]
    read: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    also: tuple["Recording", ...] = ()

    @classmethod
    def of(cls, accepted: Sequence[Any], taken: Sequence[tuple[Any, Any, Any]], read: NDArray[np.int64] | None = None
           ) -> "Recording":
        """The recording of all ports.

        Parameters:
            accepted: of each input, at least one.
            taken: ``cycles``, ``data`` and ``last`` of each output, at least one.
        """
        width = taken[0][1].shape[1]
        none = np.empty(0, np.int64), np.empty((0, width), np.uint8), np.empty(0, np.bool_)
        each = [cls(np.asarray([] if come is None else come, np.int64), *(none if given is None else given))
                for come, given in zip_longest(accepted, taken, fillvalue=None)]
        return replace(each[0], also=tuple(each[1:]), read=each[0].read if read is None else read)

    def given(self, port: int) -> "Recording":
        """The same with the output beats of a port, counted from 0, in the place of the first one's."""
        if not port:
            return self
        side, own = self.also[port - 1], replace(self, also=())
        return replace(self, cycles=side.cycles, data=side.data, last=side.last,
                       also=(*self.also[:port - 1], own, *self.also[port:]))

    def ports(self) -> Iterator["Recording"]:
        """The beats of each pair of ports."""
        yield self
        yield from self.also


@dataclass(frozen=True, eq=False)
class Outcome:
    """Parameters:
        recordings: one per run, up to the one with the fault (which has none if it broke before its first beat).
        fault: the broken stream rule (kind, run, cycle), or None. Behind the kind stands the number of the port, where
            it is not the first one.
        cycles: all that were simulated.
        seconds: of the simulator's own program alone, without its start; 0 of the harness.
    """

    recordings: tuple[Recording, ...]
    fault: tuple[str, int, int] | None
    cycles: int
    seconds: float = 0.0

    FILE = "outcome.npz"
    ARRAYS = ("accepted", "cycles", "data", "last", "read")

    def given(self, port: int) -> "Outcome":
        """The same with the output beats of a port, counted from 0, in the place of the first one's."""
        return replace(self, recordings=tuple(each.given(port) for each in self.recordings)) if port else self

    def then(self, other: "Outcome") -> "Outcome":
        """This one and then that of further runs."""
        fault = other.fault and (other.fault[0], other.fault[1] + len(self.recordings), other.fault[2])
        return Outcome((*self.recordings, *other.recordings), self.fault or fault, self.cycles + other.cycles,
                       self.seconds + other.seconds)

    def save(self, folder: Path) -> None:
        arrays = {f"{name} {i} {n}": getattr(side, name) for i, recording in enumerate(self.recordings)
                  for n, side in enumerate(recording.ports()) for name in self.ARRAYS}
        ports = len(list(self.recordings[0].ports())) if self.recordings else 1
        artifact.write_npz(folder / self.FILE, "circulant-outcome", 1, arrays,
                           runs=len(self.recordings), ports=ports, fault=self.fault, cycles=self.cycles)

    @classmethod
    def load(cls, folder: Path) -> "Outcome":
        arrays, meta = artifact.read_npz(folder / cls.FILE, "circulant-outcome", 1)

        def recording(run: int, port: int, also: tuple[Recording, ...] = ()) -> Recording:
            return Recording(**{name: arrays[f"{name} {run} {port}"] for name in cls.ARRAYS}, also=also)

        recordings = tuple(recording(i, 0, tuple(recording(i, n) for n in range(1, meta["ports"])))
                           for i in range(meta["runs"]))
        return cls(recordings, meta["fault"] and tuple(meta["fault"]), meta["cycles"])
