"""A design in Icarus Verilog, a simulator with unknown values: every register and memory word starts as X, as it may in
silicon, until the reset or the circuit itself gives it a value.

It plays fewer vectors than `circulant.sim.cosim.verify`, some hundred cycles a second, but needs no compiler: the test
bench is ``icarus_bench.v`` with the names of the design, and files of beats.
"""
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from circulant.sim import child
from circulant.sim.cosim.job import Job, Outcome, Recording
from circulant.sim.cosim.judge import check
from circulant.sim.cosim.manifest import INPUTS, Manifest
from circulant.sim.cosim.simulate import job_of
from circulant.sim.cosim.stimuli import Run
from circulant.sim.cosim.verification import played_of
from circulant.sim.files import temporaries
from circulant.sim.refusal import Refusal, ToolError
from circulant.sim.vectors import Vectors

__all__ = ["FourState", "available", "replay", "run"]

TOOLS = ("iverilog", "vvp")
LANGUAGE = "-g2012"  # What cocotb's runner passes; an ``always @*`` that reads nothing never runs in it.
COMPILE_SECONDS, SIMULATE_SECONDS = 300.0, 1800.0

STALLED, CUT = 2, 2
SHORT, LONG, LONG_ODDS = 3, 40, 0.02
WAVES = '$dumpfile("dump.fst");\n    $dumpvars(0, dut);'
SHORTEST_DRAIN, LONGEST_DRAIN = 64, 600


@dataclass(frozen=True)
class FourState:
    """The result of `run`.

    Parameters:
        words: that were compared, those of stalled sequences and of one after a second reset included.
        mismatches: how many of them differ from the golden model.
        first: the first that does.
        cycles: all that were simulated.
    """

    words: int
    mismatches: int
    first: check.Mismatch | None
    cycles: int


def available() -> bool:
    """Whether Icarus Verilog is on the PATH."""
    return all(map(shutil.which, TOOLS))


def run(folder: str | Path, vectors: Vectors | str | Path, *, stalls: bool = True, seed: int = 0,
        patience: int | None = None, seconds: float = SIMULATE_SECONDS) -> FourState:
    """Simulate the design in ``folder`` with Icarus Verilog and compare every output word.

    After a reset of one cycle all sequences are played back to back; with ``stalls`` some once more with idle input
    and a hesitant output, and two others after a reset that cuts off the sequence before.

    Parameters:
        folder, vectors: as of `circulant.sim.cosim.verify`.
        seed: of idle cycles and pauses.
        patience: cycles without a beat after which the circuit counts as stuck; None chooses.
        seconds: limit of the simulation.

    Raises:
        Refusal: when files are missing, damaged or do not belong together, or Icarus is missing.
        SimulationError: when the circuit breaks a rule of its streams, or shows an unknown bit after its reset.
        ToolError: when Icarus does not compile the Verilog, fails, or exceeds its time.
    """
    if not available():
        raise Refusal(f"A simulation with unknown values needs Icarus Verilog, but PATH has no {' and no '.join(TOOLS)}"
                      "; install it (on Debian: apt-get install iverilog)")
    manifest = Manifest.load(folder)
    if not isinstance(vectors, Vectors):
        vectors = Vectors.load(vectors)
    played = played_of(manifest, vectors)
    runs = [Run("back-to-back", tuple(range(len(played))))]
    if stalls:
        some = [n % len(played) for n in range(STALLED + CUT)]
        runs += [Run("stalled", tuple(some[:STALLED]), idle="short", pause="short"),
                 Run("after reset in the middle of a sequence", tuple(some[:CUT]), interrupted=tuple(some[CUT:]))]
    job = job_of(manifest, tuple(runs), played, patience)
    with temporaries.folder() as folder:
        outcome = replay(manifest, job, folder, seed=seed, seconds=seconds)
    compared = check.judged(job, outcome, manifest.outputs, played)
    return FourState(compared.words, compared.mismatches, compared.first, outcome.cycles)


def replay(manifest: Manifest, job: Job, work: Path, *, seed: int = 0, waves: bool = False,
           seconds: float = SIMULATE_SECONDS) -> Outcome:
    """Play the runs of a job in a folder; resets are of one cycle, idle cycles and pauses are drawn anew.

    Parameters:
        waves: write ``dump.fst`` there, all signals over time.

    Raises:
        ToolError: as `run`.
    """
    for file in (*manifest.verilog, *manifest.images):
        shutil.copyfile(file, work / file.name)
    _write(work, manifest, job, np.random.default_rng(seed), waves)
    _simulate(work, manifest, seconds, waves)
    return _outcome(work / "recorded.txt", job)


def _write(work: Path, manifest: Manifest, job: Job, rng: np.random.Generator, waves: bool) -> None:
    """The test bench, its beats and its pauses."""
    width = max(source.beats.shape[-1] for source in job.sources)
    given = max(sink.output_bytes for sink in job.sinks)
    beats: list[str] = []
    pauses: list[int] = []
    calls: list[str] = []
    for one in job.runs:
        for sequences, cut in ((one.interrupted, True), (one.sequences, False)):
            stalled = one.idle != "none"
            for n, source in enumerate(job.sources if sequences else ()):
                first = len(beats)
                for sequence in sequences:
                    words, marks = source.offered(sequence)
                    idle = _spells(rng, len(marks), stalled)
                    beats += [f"{int(wait) << 1 | int(last):05x}{word[::-1].tobytes().hex():0>{2 * width}}"
                              for wait, last, word in zip(idle, marks, words, strict=True)]
                calls += [f"send({n}, {first}, {len(beats)}, {int(not cut)});"]
            if cut and sequences:
                calls += [f"await({n}, 0, 0, 0);" for n in range(len(job.sinks))]
                calls += [f"cut((done * {int(rng.integers(20, 120))}) / 100);", "reset(1);"]
            elif not cut:
                for n, sink in enumerate(job.sinks):
                    first = len(pauses)
                    pauses += _spells(rng, sink.due(one), stalled).tolist()
                    calls += [f"await({n}, {first}, {len(pauses)}, 1);"]
                calls += ["play;"]
                if one is job.runs[0]:
                    calls += [f"done = busy / {len(sequences)};"]
    (work / "beats.mem").write_text("\n".join(beats) + "\n")
    (work / "pauses.mem").write_text("".join(f"{pause:04x}\n" for pause in pauses))
    names = {
        "TOP": manifest.top, "CLOCK": manifest.clock, "RESET": manifest.reset,
        "SOURCES": len(job.sources), "SINKS": len(job.sinks), "PORTS": ",\n".join(_ports(job, 8 * width, 8 * given)),
        "UNUSED": "\n".join(f"  assign m_data[{8 * (given * (n + 1)) - 1}:{8 * (given * n + sink.output_bytes)}] = 0;"
                            for n, sink in enumerate(job.sinks) if sink.output_bytes < given),
        "INPUT_BITS": 8 * width, "OUTPUT_BITS": 8 * given, "SENT": len(beats),
        "DUE": len(pauses), "PATIENCE": job.patience, "SHORTEST": SHORTEST_DRAIN, "LONGEST": LONGEST_DRAIN,
        "IDLE": " ".join(f".{name}(0)," for what, name in job.config.items() if what in INPUTS),
        "WAVES": WAVES if waves else "", "RUNS": "\n".join(f"    {call}" for call in calls)}
    text = Path(__file__).with_name("icarus_bench.v").read_text()
    (work / "bench.v").write_text(re.sub(r"@(\w+)@", lambda found: str(names[found[1]]), text))


def _ports(job: Job, width: int, given: int) -> Iterator[str]:
    """The connections of the streams, in places of so many bits."""
    ends = [("s", n, width, source.input, 8 * source.beats.shape[-1]) for n, source in enumerate(job.sources)]
    ends += [("m", n, given, sink.output, 8 * sink.output_bytes) for n, sink in enumerate(job.sinks)]
    for side, n, place, prefix, bits in ends:
        yield f"    .{prefix}_tdata({side}_data[{place * n + bits - 1}:{place * n}])"
        for signal in ("valid", "ready", "last"):
            yield f"    .{prefix}_t{signal}({side}_{signal}[{n}])"


def _spells(rng: np.random.Generator, count: int, stalled: bool) -> NDArray[np.int64]:
    """Cycles of waiting before each of so many beats: none before half of them, a few before most others."""
    spells = np.where(rng.random(count) < LONG_ODDS, rng.integers(1, LONG, count), rng.integers(1, SHORT + 1, count))
    return np.asarray(spells * (rng.random(count) < 0.5) * stalled, np.int64)


def _simulate(work: Path, manifest: Manifest, seconds: float, waves: bool) -> None:
    where = ", ".join(str(file) for file in manifest.verilog)
    compiled = child.run(["iverilog", LANGUAGE, "-s", "circulant_bench", "-o", "design.vvp", "bench.v",
                          *(file.name for file in manifest.verilog)],
                         step=f"compiling {where}", seconds=COMPILE_SECONDS, folder=work)
    if compiled.returncode:
        said = [line for line in compiled.stderr.splitlines() if line.strip()] or ["it said nothing"]
        raise ToolError(f"The Verilog of {manifest.folder} must compile with Icarus Verilog, but it does not "
                        f"({said[0].strip()}); generate the design again")
    arguments = ["-fst"] if waves else []
    done = child.run(["vvp", "-n", "design.vvp", *arguments], step=f"simulating {where}", seconds=seconds, folder=work)
    if done.returncode:
        last = (f"{done.stdout}\n{done.stderr}".strip().splitlines() or ["it said nothing"])[-1]
        raise ToolError(f"vvp must run {where} to its end, but it ended with exit code {done.returncode} ({last}); "
                        "generate the design again")


def _outcome(file: Path, job: Job) -> Outcome:
    """The record of the test bench.

    Raises:
        ToolError: when it has not come to its end.
    """
    recordings: list[Recording] = []
    accepted: list[list[int]] = []
    given: list[list[tuple[int, bool, bytes]]] = []
    fault, cycles, ended, cutting = None, 0, False, False

    def close() -> None:
        recordings.append(Recording.of(accepted, [(
            np.array([cycle for cycle, _, _ in each], np.int64),
            np.frombuffer(b"".join(beat[:sink.output_bytes] for _, _, beat in each), np.uint8)
            .reshape(-1, sink.output_bytes), np.array([last for _, last, _ in each], np.bool_))
            for sink, each in zip(job.sinks, given, strict=True)]))

    started = False
    for line in file.read_text().splitlines() if file.is_file() else ():
        kind, *rest = line.split()
        if kind in ("run", "cut", "end") and started and not cutting:
            close()
        if kind in ("run", "cut"):
            accepted, given = [[] for _ in job.sources], [[] for _ in job.sinks]
            started, cutting = True, kind == "cut"
        elif kind == "i":
            accepted[int(rest[1])].append(int(rest[0]))
        elif kind == "o":
            given[int(rest[3])].append((int(rest[0]), rest[1] == "1", bytes.fromhex(rest[2])[::-1]))
        elif kind == "fault":
            what = rest[0] if rest[2] == "0" else f"{rest[0]} {rest[2]}"
            fault, cycles, ended = (what, len(recordings), int(rest[1])), int(rest[1]), True
            if started and not cutting:
                close()
        else:
            cycles, ended = int(rest[0]), True
    if not ended:
        raise ToolError("vvp must run the test bench to its end, but its record breaks off; check whether the disk of "
                        "the temporary folder is full")
    return Outcome(tuple(recordings), fault, cycles)
