"""Proves a reloadable design under Verilator: networks are exchanged between two sequences, states saved, restored."""
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from circulant.sim.arith.fixed import Integers
from circulant.sim.configuration import Configuration, Operation, state_parts
from circulant.sim.cosim.build import build
from circulant.sim.cosim.job import Job, Outcome, Played
from circulant.sim.cosim.judge import check
from circulant.sim.cosim.judge.check import Mismatch
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.cosim.simulate import Progress, job_of, simulate
from circulant.sim.cosim.stimuli import Run
from circulant.sim.cosim.toolchain import find
from circulant.sim.document import Document
from circulant.sim.files.files import read_text, reason
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal
from circulant.sim.shape.sequences import Lengths

__all__ = ["Exchange", "Session", "exchange"]

Writes = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Exchange:
    """The result of `exchange`.

    Parameters:
        words_written: through the port for a network, one per cycle.
        words_compared, mismatches, first: output words against the golden model of the network in charge.
        values_compared, wrong_values: of states that were read back; 0 where the design keeps none.
        cycles: all that were simulated.
    """

    words_written: int
    words_compared: int
    mismatches: int
    first: Mismatch | None
    values_compared: int
    wrong_values: int
    cycles: int
    simulator: str

    def as_json(self) -> Document:
        return asdict(self)


def exchange(folder: str | Path, network: Network, other: Network, writes: Writes, inputs: Integers, *,
             lengths: Lengths | None = None, progress: Progress | None = None, patience: int | None = None) -> Exchange:
    """Simulate the reloadable design in ``folder`` while its network is exchanged and its state taken away.

    All sequences are played with its network, with the other one, and with the first one again, which is loaded from
    the design's images. Where the design keeps states, a sequence then comes in pieces: it is saved, another one of the
    other network played to its end, and the first one gone on with where it was.

    Parameters:
        network: that of the design.
        other: what ``writes`` load, as `circulant.hw.writes` gives them.
        inputs: integers (N, T, inputs) or (N, inputs), as in the vectors of the network.
        lengths: (N,), the steps of each sequence; None where all have T.
        progress, patience: see `circulant.sim.cosim.verify`.

    Raises:
        Refusal: when the design is not reloadable or another network's, a file is missing or damaged, or a tool is.
        SimulationError: when the circuit breaks a rule of its streams or does not answer at its port.
        ToolError: when Verilator, the compiler or the simulator fails.
    """
    manifest = Manifest.load(folder)
    manifest.require_configuration()
    if manifest.network != network.hash:
        raise Refusal(f"The network must be the one that {manifest.folder / 'manifest.json'} was made from "
                      f"({manifest.network[:12]}…), not {network.hash[:12]}…; generate the design again")
    session = Session.of(manifest, network, other, writes, patience=patience)
    toolchain, tell = find(), progress or (lambda stage, done, total: None)
    tell("build", 0, 1)
    built = build(manifest, toolchain, poll=lambda: tell("build", 0, 1))
    tell("build", 1, 1)
    words = mismatches = values = wrong = cycles = 0
    first = None
    for job, played, states in session.jobs(inputs, lengths):
        outcome = simulate(manifest, toolchain, built.folder, job, tell)
        check.require_stream_rules(job, outcome, manifest.output, played)
        compared = check.compare(job, outcome, manifest.output, played)
        words, mismatches = words + compared.words, mismatches + compared.mismatches
        first, cycles = first or compared.first, cycles + outcome.cycles
        for got, golden in session.read(outcome, states):
            values, wrong = values + golden.size, wrong + int((got != golden).sum())
    return Exchange(len(writes), words_compared=words, mismatches=mismatches, first=first, values_compared=values,
                    wrong_values=wrong, cycles=cycles, simulator=toolchain.simulator)


def _words(image: Path) -> list[int]:
    """
    Raises:
        Refusal: when a memory image is no list of hexadecimal numbers.
    """
    try:
        return [int(line, 16) for line in read_text(image).split()]
    except (OSError, ValueError) as error:
        raise Refusal(f"{image} must hold a hexadecimal number on each line, but does not ({reason(error)}); generate "
                      "the design again") from None


@dataclass(frozen=True)
class Session:
    """The stimuli of `exchange`, and the answers that have to come."""

    manifest: Manifest
    config: Configuration
    network: Network
    other: Network
    load: list[Operation]
    load_other: list[Operation]
    patience: int | None

    @classmethod
    def of(cls, manifest: Manifest, network: Network, other: Network, writes: Writes, *,
           patience: int | None = None) -> Self:
        """
        Raises:
            Refusal: when the design is not reloadable, or an image is missing or damaged.
        """
        config = manifest.require_configuration()
        own = config.writes({image.stem: _words(image) for image in manifest.images})
        return cls(manifest, config, network=network, other=other, load=config.load(own),
                   load_other=config.load(writes), patience=patience)

    def jobs(self, inputs: NDArray[np.int64], lengths: Lengths | None) -> Iterator[tuple[Job, Played, list[Any]]]:
        """Jobs, what they play, and the states that are read in turn."""
        yield *self._whole(inputs, lengths), []
        if self.config.states and inputs.ndim == 3:
            group = np.arange(self.manifest.streams) % len(inputs)
            yield self._pieces(inputs[group] if lengths is None else inputs[group, :int(lengths[group].min())])

    def read(self, outcome: Outcome, states: list[Any]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Parts of the states as they were read, and as they have to be."""
        found = [recording.read for recording in outcome.recordings if len(recording.read)]
        for words, golden in zip(found, states, strict=True):
            yield from zip(state_parts(self.config.saved(words.tolist(), golden)), state_parts(golden),
                           strict=True)

    def _whole(self, inputs: NDArray[np.int64], lengths: Lengths | None) -> tuple[Job, Played]:
        """Sequences under one network and the other."""
        mine, theirs = (self._played(inputs, each.run_integers(inputs, lengths), lengths)
                        for each in (self.network, self.other))
        own, others = tuple(range(len(mine))), tuple(range(len(mine), 2 * len(mine)))
        runs = (Run("own network", own), Run("other network", others, script=0),
                Run("own network again", own, script=1))
        return self._job(runs, [mine, theirs], [self.load_other, self.load])

    def _pieces(self, group: NDArray[np.int64]) -> tuple[Job, Played, list[Any]]:
        """A sequence of each stream in pieces, and another one between them."""
        config, mine, streams = self.config, self.network, self.manifest.streams
        half = max(1, group.shape[1] // 2)
        head, tail = group[:, :half], group[:, -half:]
        begun, early = mine.resume(head, mine.initial(streams))
        more, saved = mine.resume(tail, early)
        between, _ = self.other.resume(head, self.other.initial(streams))
        ended, _ = mine.resume(tail, saved)
        final, _ = mine.resume(tail, early)
        acts = [
            ("a piece", head, begun, False, None),
            ("the next piece", tail, more, False, None),
            ("another sequence between", head, between, True, [*config.save(), *self.load_other, *config.restart(0)]),
            ("gone on where it was saved", tail, ended, True, [*self.load, *config.restore(saved), *config.save()]),
            ("a new sequence after its end", head, begun, False, None),
            ("the end of that", tail, final, True, config.save()),
        ]
        scripts = [script for *_, script in acts if script is not None]
        runs, number = [], iter(range(len(scripts)))
        for n, (name, _, _, ends, script) in enumerate(acts):
            runs.append(Run(name, (n,), ends=ends, silent=not (ends or mine.per_step),
                            script=None if script is None else next(number)))
        parts = [self._played(piece, y) for _, piece, y, *_ in acts]
        return *self._job(tuple(runs), parts, scripts), [saved, saved, early]

    def _job(self, runs: tuple[Run, ...], parts: Iterable[Played],
             scripts: Iterable[list[Operation]]) -> tuple[Job, Played]:
        """The scripts come while the design is held."""
        done = tuple(np.array([*self.config.hold(), *script, *self.config.release()], np.int64) for script in scripts)
        played = reduce(Played.then, parts)
        return job_of(self.manifest, runs, played, self.patience, done), played

    def _played(self, inputs: NDArray[np.int64], outputs: NDArray[np.int64],
                lengths: Lengths | None = None) -> Played:
        sent, golden = (vectors.reshape(len(vectors), -1, size) for vectors, size in (
            (inputs, self.network.flow.size), (outputs, self.network.end.size)))
        return Played.of(sent, golden, lengths, streams=self.manifest.streams)
