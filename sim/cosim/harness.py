"""The cocotb test that runs inside the simulator: plays the runs of a job and records every beat; it judges no value.

One coroutine wakes at each rising edge and calls source, sink and monitor in turn: with a circuit that costs nothing
that is about 100,000 cycles a second, many times what a coroutine for each of them would reach.
"""
import math
import random
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from circulant.sim.cosim.axi_stream import Fault, Monitor, Patience, Port, Sink, Source
from circulant.sim.cosim.config import Config
from circulant.sim.cosim.job import Job, Outcome, Recording
from circulant.sim.cosim.stimuli import Run

SHORT = 3
LONG_SPELLS = 4  # To a vector, about.
LONGEST = 25_000
DRAIN = (64, 10_000)
PROGRESS_SECONDS = 0.2


class Bench:
    """A circuit under a job.

    Members:
        run: index of the run that is played.
        cycle: rising edges so far.
        recordings: the beats of the runs so far.
    """

    def __init__(self, dut: Any, job: Job, folder: Path) -> None:
        self._job = job
        self._progress = folder / "progress"
        self._clock = getattr(dut, job.clock)
        self._edge = RisingEdge(self._clock)
        self._reset = getattr(dut, job.reset)
        self._inputs = [Port.of(dut, each.input) for each in job.sources]
        self._outputs = [Port.of(dut, each.output) for each in job.sinks]
        self._config = Config(dut, job.config, self._step, job.patience) if job.config else None
        self._longest = max(job.steps), max(job.results)
        self._read = np.empty(0, np.int64)
        self._waiting: list[Source] = []
        self._sequence_cycles = 1
        self._done = 0
        self._told = 0.0
        self.run = 0
        self.cycle = 0
        self.recordings: list[Recording] = []

    async def play_all(self) -> None:
        """Reset, then every run of the job.

        Raises:
            Fault: at the first broken rule, which is one of `run`.
        """
        Clock(self._clock, 10, unit="ns").start()
        await self._pulse_reset(Run.reset_cycles)
        for index, run in enumerate(self._job.runs):
            self.run = index
            draw = random.Random(run.name)
            if run.interrupted:
                await self._interrupt(run, draw)
            self._read = np.empty(0, np.int64)
            sources, sinks = self._ends(run, run.sequences, draw)
            if run.script is not None and self._config is not None:
                self._waiting = sources
                self._read = np.array(await self._config.play(self._job.scripts[run.script].tolist()), np.int64)
                self._waiting = []
            start = self.cycle
            await self._play(run, sources, sinks)
            if index == 0:  # Of the longest sequence.
                vectors = sum(self._job.steps[i] for i in run.sequences)
                self._sequence_cycles = max(1, (self.cycle - start) * self._longest[0] // vectors)

    async def _play(self, run: Run, sources: Sequence[Source], sinks: Sequence[tuple[Sink, Monitor]]) -> None:
        try:
            await self._exchange(run, sources, sinks)
        finally:
            self.recordings.append(Recording.of(
                [source.accepted for source in sources],
                [(np.array(monitor.cycles, np.int64),
                  np.frombuffer(b"".join(word.to_bytes(job.output_bytes, "little") for word in monitor.data), np.uint8)
                  .reshape(-1, job.output_bytes), np.array(monitor.last, np.bool_))
                 for job, (_, monitor) in zip(self._job.sinks, sinks, strict=True)], self._read))

    def _give(self, sinks: Sequence[tuple[Sink, Monitor]]) -> list[bool]:
        """Whether each output gives a beat at this edge."""
        found = []
        for n, (_, monitor) in enumerate(sinks):
            try:
                found.append(monitor.edge(self.cycle))
            except Fault as fault:
                raise Fault(f"{fault.kind} {n}" if n else fault.kind, fault.cycle) from None
        for sink, _ in sinks:
            sink.edge()
        return found

    async def _exchange(self, run: Run, sources: Sequence[Source], sinks: Sequence[tuple[Sink, Monitor]]) -> None:
        """All sequences of a run, and then as many cycles as a late beat might need."""
        sent = [job.sent(run.sequences).tolist() for job in self._job.sources]
        given = [job.given(run.sequences).tolist() for job in self._job.sinks]
        due = [job.due(run) for job in self._job.sinks]
        before, start, patience, held = self._done, self.cycle, Patience(self._job.patience), False
        while (any(len(source.accepted) < ends[-1] for source, ends in zip(sources, sent, strict=True))
               or any(len(monitor.cycles) < most for (_, monitor), most in zip(sinks, due, strict=True))):
            await self._edge
            self.cycle += 1
            taken = self._give(sinks)
            for n, ((_, monitor), most) in enumerate(zip(sinks, due, strict=True)):
                if len(monitor.cycles) > most:
                    raise Fault(f"surplus {n}" if n else "surplus", self.cycle)
            moved = [source.edge(self.cycle) for source in sources]
            patience.edge(self.cycle, held or any(moved) or any(taken))
            if taken[0]:
                self._tell(before + bisect_right(given[0], len(sinks[0][1].cycles)))
            if run.isolated:
                out = min(bisect_right(ends, len(monitor.cycles)) for ends, (_, monitor) in
                          zip(given, sinks, strict=True))
                held = self._hold(sources, start, [ends[min(out, len(ends) - 1)] for ends in sent])
        self._done = before + len(run.sequences)
        shortest, longest = DRAIN
        for _ in range(min(shortest + (self.cycle - start) // len(run.sequences), longest)):
            await self._edge
            self.cycle += 1
            self._give(sinks)

    def _hold(self, sources: Sequence[Source], start: int, limits: Sequence[int]) -> bool:
        """Whether a last vector is held back.

        A sequence is let in when the one before is out, and its last vector a sequence's time after the others, and no
        less than the planned latency: what then passes until its outputs are there is the latency, and no work of
        earlier vectors. Of several inputs the first one waits for that.

        Parameters:
            limits: input beats up to the end of the sequence that may come in.
        """
        first, *others = sources
        for source, limit in zip(others, limits[1:], strict=True):
            source.limit = limit
        waited = self.cycle - max((source.accepted or [start])[-1] for source in sources)
        empty = waited > max(self._sequence_cycles, self._job.latency)
        first.limit = limits[0] if empty else max(first.limit, limits[0] - self._job.input_beats)
        return len(first.accepted) == first.limit < limits[0]

    async def _interrupt(self, run: Run, draw: random.Random) -> None:
        """Sequences that a reset cuts off; their outputs are only held to the rules of the stream."""
        sources, sinks = self._ends(run, run.interrupted, draw)
        if run.reset_after is None:
            sinks = [(Sink(port, pause=None), monitor) for port, (_, monitor) in zip(self._outputs, sinks, strict=True)]
            end, patience = math.inf, Patience(self._job.patience)
        else:
            share = self._job.steps[run.interrupted[0]] / self._longest[0]
            end, patience = self.cycle + max(1, round(run.reset_after * share * self._sequence_cycles)), None
        while self.cycle < end and not (run.reset_after is None and any(monitor.waiting for _, monitor in sinks)):
            await self._edge
            self.cycle += 1
            self._give(sinks)
            moved = [source.edge(self.cycle) for source in sources]
            if patience is not None:
                patience.edge(self.cycle, any(moved))
        for source in sources:
            source.stop()
        await self._pulse_reset(run.reset_cycles)

    async def _step(self) -> int:
        """An edge at which a held circuit, which is offered the next beats, takes none."""
        await self._edge
        self.cycle += 1
        taken = [source.edge(self.cycle) for source in self._waiting]
        if any(taken) and self._config and self._config.held:
            raise Fault("held", self.cycle)
        return self.cycle

    async def _pulse_reset(self, cycles: int) -> None:
        """Reset for some cycles, nothing offered; from the second on nothing may be offered by the circuit either."""
        self._reset.value = 1
        for port in self._inputs:
            port.valid.value = 0
        for port in self._outputs:
            port.ready.value = 0
        for i in range(cycles):
            await self._edge
            self.cycle += 1
            for n, port in enumerate(self._outputs):
                if i > 0 and int(port.valid.value):
                    raise Fault(f"reset {n}" if n else "reset", self.cycle)
        self._reset.value = 0

    def _ends(self, run: Run, sequences: Sequence[int], draw: random.Random
              ) -> tuple[list[Source], list[tuple[Sink, Monitor]]]:
        """Drivers and monitors of the ports, each with spells of its own."""
        sources, sinks = [], []
        for job, port in zip(self._job.sources, self._inputs, strict=True):
            beats = [(int.from_bytes(beat.tobytes(), "little"), int(last & run.ends))
                     for i in sequences for beat, last in zip(*job.offered(i), strict=True)]
            steps = max(job.steps)
            sources.append(Source(port, beats, wait=self._spells(run.idle, steps, steps * job.input_beats, draw),
                                  limit=0 if run.isolated else len(beats)))
        for job, port in zip(self._job.sinks, self._outputs, strict=True):
            results = max(job.results)
            pause = self._spells(run.pause, results, results * job.output_beats, draw)
            sinks.append((Sink(port, pause=pause, until_valid=run.pause == "until valid"), Monitor(port)))
        return sources, sinks

    def _spells(self, kind: str, vectors: int, beats: int, draw: random.Random) -> Callable[[], int]:
        """Spells of a run's ``idle`` or ``pause`` before each of the longest sequence's beats.

        Half of them are of length 0. Of a vector of many beats only a few spells are long, and the others short: with
        every one long it would take hundreds of times its time.
        """
        if kind == "none":
            return lambda: 0
        longest, odds = SHORT, 0.5
        if kind == "long":
            longest = max(SHORT, min(2 * self._sequence_cycles // vectors, self._job.patience // 4, LONGEST))
            odds = min(odds, LONG_SPELLS * vectors / beats)

        def spell() -> int:
            chance = draw.random()
            return draw.randint(1, longest if chance < odds else SHORT) if chance < 0.5 else 0

        return spell

    def _tell(self, done: int) -> None:
        now = time.monotonic()
        if now - self._told > PROGRESS_SECONDS:
            self._told = now
            self._progress.write_text(str(done))


@cocotb.test()
async def simulate(dut: Any) -> None:
    folder = Path.cwd()
    job = Job.load(folder)
    bench = Bench(dut, job, folder)
    fault = None
    try:
        await bench.play_all()
    except Fault as broken:
        fault = (broken.kind, bench.run, broken.cycle)
    Outcome(tuple(bench.recordings), fault, bench.cycle).save(folder)
