"""A long run of designs under Verilator: words under random stalls and resets, each compared with the golden model."""
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.designs import DESIGNS, Shape, of_shape
from benchmarks.mutation.extreme import extreme
from circulant.hw import generate, writes
from circulant.sim.cosim.build import build
from circulant.sim.cosim.job import Job, Outcome, Played
from circulant.sim.cosim.judge import check
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.cosim.simulate import drive, job_of, simulate
from circulant.sim.cosim.state_exchange import Session
from circulant.sim.cosim.stimuli import PULSES, Run
from circulant.sim.cosim.toolchain import find
from circulant.sim.cosim.verification import planned, span
from circulant.sim.document import Document
from circulant.sim.exercise import exercise

__all__ = ["SOAKED", "measure"]

SOAKED = {"gru-steps": Shape((16, 16), {"cell": "gru", "inputs": 16, "hidden": 64, "projection": 0}),
          **{name: DESIGNS[name] for name in ("digits-gru", "fsdd-gru", "fsdd-lstm", "lenet5", "crnn", "bidirectional",
                                              "reloadable", "interleaved")}}
"""Designs of which a simulator is compiled in minutes: those of `benchmarks.designs` but ResNet-8 and the three of the
papers' sizes; and one with an output in every step, of which most words are."""

SEQUENCES, STEPS, IMAGES = 64, 12, 4
"""Drawn sequences, their steps, and drawn images, which are played again and again under other stalls."""

SHARE = 4
"""One of how many rounds is of resets at random moments."""

MOMENTS = 100
"""Moments in such a round."""

EXCHANGES = 5
"""One of how many rounds of a design with a configuration port exchanges networks, and takes states away and back."""


class Soaked:
    """A design in its simulator, and what has been played so far.

    Raises:
        circulant.sim.refusal.Refusal: when Verilator is missing.
    """

    def __init__(self, name: str, folder: Path, seed: int) -> None:
        network, shape = of_shape(name, SOAKED[name]), SOAKED[name]
        image = network.flow.grid is not None
        drawn = exercise(network, IMAGES if image else SEQUENCES, steps=STEPS, seed=seed)
        design = generate(network, **shape.options, objective="throughput")
        self._manifest = Manifest.load(design.write(folder / name))
        self._tools, self._random, self._seed = find(), random.Random(seed), seed
        self._built = build(self._manifest, self._tools)
        self._played, _, _ = planned(self._manifest, drawn.vectors, None)
        self._session, self._inputs = None, drawn.vectors.inputs
        if self._manifest.configuration:
            other = extreme(network, seed)
            self._session = Session.of(self._manifest, network, other, writes(design, other))
        self.name, self.cycles, self.rounds, self.resets, self.exchanges = name, 0, 0, 0, 0
        self.words = self.mismatches = 0
        self.first, self.coverage, self.seconds = "", drawn.coverage, 0.0

    def play(self) -> None:
        """A round: all samples in any order with stalls at random, or one after resets at random moments, or some
        between exchanges of networks and states.

        Raises:
            circulant.sim.cosim.judge.check.SimulationError: when the circuit breaks a rule of its streams.
        """
        start = time.perf_counter()
        self.rounds += 1
        count, rng = len(self._played), self._random
        if self._session is not None and self.rounds % EXCHANGES == 0:
            self._exchange(self._session)
            self.seconds += time.perf_counter() - start
            return
        if self.rounds % SHARE:
            run = Run(f"stalled, seed {self._seed + self.rounds}", tuple(rng.sample(range(count), count)),
                      seed=self._seed + self.rounds)
        else:
            cycles = span(self._manifest, max(map(len, self._played.inputs)))
            moments = tuple((rng.randrange(cycles), rng.choice(PULSES)) for _ in range(MOMENTS))
            run = Run("after resets", (rng.randrange(count),) * MOMENTS, moments=moments)
            self.resets += MOMENTS
        job = job_of(self._manifest, (run,), self._played, None)
        outcome = drive(self._manifest, self._tools, self._built.folder, job, lambda stage, done, total: None)
        self._count(job, outcome, self._played)
        self.seconds += time.perf_counter() - start

    def _exchange(self, session: Session) -> None:
        """Two drawn sequences under one network, another one and the first again; and in pieces, with states that are
        read, written back, and compared."""
        some = self._random.sample(range(len(self._inputs)), 2)
        for job, played, states in session.jobs(self._inputs[some], None):
            outcome = simulate(self._manifest, self._tools, self._built.folder, job, lambda stage, done, total: None)
            self._count(job, outcome, played)
            wrong = sum(int((got != golden).sum()) for got, golden in session.read(outcome, states))
            self.mismatches += wrong
            self.first = self.first or ("a state that was read differs" if wrong else "")
        self.exchanges += 1

    def _count(self, job: Job, outcome: Outcome, played: Played) -> None:
        check.require_stream_rules(job, outcome, self._manifest.output, played)
        found = check.compare(job, outcome, self._manifest.output, played)
        self.words += found.words
        self.mismatches += found.mismatches
        self.cycles += outcome.cycles
        self.first = self.first or str(found.first or "")

    def figures(self) -> Document:
        return {name: getattr(self, name) for name in ("words", "mismatches", "first", "cycles", "rounds", "resets",
                                                       "exchanges", "seconds")} | {"coverage": self.coverage.as_json()}

    def __str__(self) -> str:
        reached, points = (sum(each.values()) for each in (self.coverage.reached, self.coverage.points))
        return (f"{self.words:,} words, {self.mismatches} mismatches, {self.cycles:,} cycles, {self.resets:,} resets"
                f"{f', {self.exchanges} exchanges of networks and states' if self._session else ''}; "
                f"{reached} of {points} points; {self.seconds:.0f} s")


def measure(names: tuple[str, ...] = tuple(SOAKED), *, words: int, seed: int = 1, seconds: float = float("inf"),
            note: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """Play all designs for about as many cycles each, until so many words have been compared: figures and a table.

    Parameters:
        words: of all designs together.
        seed: of samples, stalls and resets.
        seconds: after which no further round begins.
    """
    with tempfile.TemporaryDirectory(prefix="circulant-soak-") as folder:
        soaked = []
        for name in names:
            note(f"{name}: compiles")
            soaked.append(Soaked(name, Path(folder), seed))
        start = time.perf_counter()
        while sum(each.words for each in soaked) < words and time.perf_counter() - start < seconds:
            least = min(soaked, key=lambda each: each.cycles)
            least.play()
            note(f"{least.name}: {least}")
    return {"benchmark": "soak", "table": {each.name: str(each) for each in soaked},
            "designs": {each.name: each.figures() for each in soaked},
            "words": sum(each.words for each in soaked), "mismatches": sum(each.mismatches for each in soaked)}
