"""Random networks, golden against C and against Verilog in two simulators; others on shared arrays, planned against
measured cycles; and damaged files, which must be refused."""
import random
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import hostile, paces
from benchmarks.draw import LONGEST, Drawn, draw, draw_graph
from benchmarks.paces import affordable, fault
from circulant.hw.beats import AUTO
from circulant.hw.c import Emulator
from circulant.sim.cosim import icarus, verify
from circulant.sim.cosim.build import build
from circulant.sim.cosim.judge import check
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.cosim.simulate import drive, job_of
from circulant.sim.cosim.stimuli import Run
from circulant.sim.cosim.toolchain import find
from circulant.sim.cosim.verification import played_of
from circulant.sim.golden.network import Network
from circulant.sim.kinds.linear import Linear
from circulant.sim.quantize.quantize import quantize
from circulant.sim.refusal import Refusal
from circulant.sim.vectors import Vectors

__all__ = ["graph_trial", "measure", "stalled", "trial"]

EXACT, REFUSED, FAILED = "exact", "refused", "failed"

MOMENTS, PATIENCE = 30, 20_000
"""Moments of resets in a graph, and cycles without a beat after which one stands still."""

BEATS = 1, 2, AUTO, 4
"""Blocks of a beat, by the seed of a graph with a fully connected layer."""
OBJECTIVES = "throughput", "auto", "auto"
"""Objectives, by the seed of a graph: with "auto" its fully connected layers may have one array."""

PLAIN = ("perceptron", "recurrent")
"""Kinds of models whose circuits others test: they are compared in C alone."""


@dataclass(frozen=True)
class Trial:
    """The outcome of one network.

    Parameters:
        outcome: "exact", "refused" or "failed".
        reason: what was refused by whom, or failed.
        compared: what equals the golden model in every word: "C", "Verilator", "Icarus".
    """

    seed: int
    title: str
    outcome: str
    reason: str = ""
    compared: tuple[str, ...] = ()


def trial(seed: int, *, verilog: bool) -> Trial:
    """Golden against C, and where the network of a seed is not `PLAIN` also against Verilog in Icarus.

    Parameters:
        verilog: whether it goes through Verilog in both simulators in any case.
    """
    drawn = draw(seed)
    compared: list[str] = []
    try:
        network, vectors = _golden(drawn)
        reasons = []
        for name, differs in _comparisons(drawn, verilog):
            try:
                wrong = differs(network, vectors)
            except Refusal as refusal:
                reasons.append(f"{name}: {refusal}")
                continue
            if wrong:
                return Trial(seed, drawn.title, FAILED, f"{name}: {wrong} words differ from the golden model")
            compared.append(name)
    except Refusal as refusal:
        return Trial(seed, drawn.title, REFUSED, f"golden: {refusal}")
    except Exception as error:
        return Trial(seed, drawn.title, FAILED, fault(error), tuple(compared))
    if not compared:
        return Trial(seed, drawn.title, REFUSED, "; ".join(reasons))
    return Trial(seed, drawn.title, EXACT, "; ".join(reasons), tuple(compared))


def _golden(drawn: Drawn) -> tuple[Network, Vectors]:
    network = quantize(drawn.model, drawn.data, **drawn.widths)
    network = network.with_argmax() if drawn.argmax else network
    return network, network.vectors(drawn.data)


def _comparisons(drawn: Drawn, verilog: bool) -> list[tuple[str, Callable[[Network, Vectors], int]]]:
    """Comparisons by name; each returns the number of words that differ."""
    def c(network: Network, vectors: Vectors) -> int:
        return int((Emulator(network).run_integers(vectors.inputs) != vectors.outputs).sum())

    def simulated(simulator: Callable[[Path, Vectors], int]) -> Callable[[Network, Vectors], int]:
        def differs(network: Network, vectors: Vectors) -> int:
            design = affordable(network, multipliers=drawn.multipliers, streams=drawn.streams,
                                max_steps=drawn.data.shape[1], objective="throughput")
            with tempfile.TemporaryDirectory(prefix="circulant-fuzz-") as folder:
                return simulator(design.write(Path(folder) / "design"), vectors)
        return differs

    chosen: list[tuple[str, Callable[[Network, Vectors], int]]] = [("C", c)]
    if verilog or drawn.kind not in PLAIN:
        chosen += [("Icarus", simulated(lambda folder, vectors: icarus.run(folder, vectors).mismatches))]
    if verilog:
        chosen += [("Verilator", simulated(lambda folder, vectors: verify(folder, vectors).mismatches))]
    return chosen


def graph_trial(seed: int, *, four_state: bool) -> Trial:
    """A random graph under Verilator, each port with stalls of its own, and after resets; one with one input and one
    output also in C.

    Parameters:
        four_state: whether it also goes through Icarus.
    """
    drawn, compared = draw_graph(seed), list[str]()
    title = f"{drawn.title}, {len(drawn.model.inputs)} inputs, {len(drawn.model.outputs)} outputs"
    try:
        network, vectors = _golden(drawn)
        wrong = 0
        if not network.many:
            wrong += int((Emulator(network).run_integers(vectors.inputs) != vectors.outputs).sum())
            compared.append("C")
        with tempfile.TemporaryDirectory(prefix="circulant-fuzz-") as folder:
            wide = any(isinstance(each, Linear) for each in network.stages)
            design = affordable(network, multipliers=drawn.multipliers, max_steps=LONGEST,
                                objective=OBJECTIVES[seed % len(OBJECTIVES)],
                                beat_blocks=BEATS[seed % len(BEATS)] if wide else 1)
            where = design.write(Path(folder) / "design")
            if four_state:
                wrong += icarus.run(where, vectors).mismatches
                compared.append("Icarus")
            wrong += stalled(where, vectors, seed)
            compared.append("Verilator")
    except Refusal as refusal:
        return Trial(seed, title, REFUSED, str(refusal), tuple(compared))
    except Exception as error:
        return Trial(seed, title, FAILED, fault(error), tuple(compared))
    why = f"{wrong} words differ from the golden model" if wrong else ""
    return Trial(seed, title, FAILED if wrong else EXACT, why, tuple(compared))


def stalled(folder: Path, vectors: Vectors, seed: int) -> int:
    """Words that differ from the golden model under Verilator: back to back, with random stalls on each port, against
    sinks that wait until the circuit is full, and after resets at random moments.

    Raises:
        SimulationError: when the circuit breaks a rule of its streams, and when it stands still.
    """
    manifest, tools = Manifest.load(folder), find()
    played, rng = played_of(manifest, vectors), random.Random(seed)
    built, every = build(manifest, tools), tuple(range(len(played)))
    runs = [Run("back-to-back", every), Run("held back until the circuit is full", every * 3, full=400),
            *(Run(f"stalled, seed {n}", every * 4, seed=n) for n in (4 * seed + 1, 4 * seed + 4)),
            Run("after resets", (rng.choice(every),) * MOMENTS, seed=seed + 1,
                moments=tuple((rng.randrange(400), rng.choice((1, 2, 4))) for _ in range(MOMENTS)))]
    wrong = 0
    for each in runs:
        job = job_of(manifest, (each,), played, PATIENCE)
        outcome = drive(manifest, tools, built.folder, job, lambda stage, done, total: None)
        wrong += check.judged(job, outcome, manifest.outputs, played).mismatches
    return wrong


def measure(*, networks: int, hardware: int, files: int, graphs: int = 0, shared: int = 0, first: int = 0,
            note: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """Networks of the seeds from ``first`` on, and damaged files: counts, what was refused, and what failed.

    Parameters:
        hardware: how many of the networks, evenly spread over the kinds, are also generated and simulated.
        graphs: other networks, see `graph_trial`; three of ten go through both simulators.
        shared: other networks, see `benchmarks.paces.measure`.
        note: told each outcome.
    """
    trials = []
    for n in range(networks):
        trials.append(trial(first + n, verilog=n * hardware // networks != (n + 1) * hardware // networks))
        note(f"{trials[-1].seed}: {trials[-1].outcome} ({', '.join(trials[-1].compared) or trials[-1].reason}): "
             f"{trials[-1].title}")
    crossed = []
    for n in range(graphs):
        crossed.append(graph_trial(first + n, four_state=n * 3 // 10 != (n + 1) * 3 // 10))
        note(f"graph {crossed[-1].seed}: {crossed[-1].outcome} ({', '.join(crossed[-1].compared)}"
             f"{'; ' * bool(crossed[-1].reason)}{crossed[-1].reason}): {crossed[-1].title}")
    graphed = Counter(each.outcome for each in crossed)
    sides = Counter(name for each in crossed if each.outcome == EXACT for name in each.compared)
    counts = Counter(each.outcome for each in trials)
    compared = Counter(name for each in trials for name in each.compared)
    planned = paces.measure(count=shared, first=first, note=note)
    broken = hostile.measure(count=files, seed=first, note=note)
    failed = [asdict(each) for each in [*trials, *crossed] if each.outcome == FAILED]
    exact = ", ".join(f"{count} by {name}" for name, count in sides.items())
    table = {
        "networks": f"{networks}: {counts[EXACT]} exact, {counts[REFUSED]} refused, {counts[FAILED]} failed",
        "compared with the golden model": ", ".join(f"{count} by {name}" for name, count in compared.items()),
        "graphs": f"{graphs}: {graphed[EXACT]} exact ({exact}), {graphed[REFUSED]} refused, {graphed[FAILED]} failed",
        "planned and measured cycles": f"{shared}: {planned['equal']} equal, {planned['different']} different, "
                                       f"{planned['refused']} refused, {planned['failed']} failed; "
                                       f"{planned['shared']} with shared arrays",
        "damaged files": f"{files}: {broken['refused']} refused, {broken['taken']} harmless, "
                         f"{broken['tracebacks']} tracebacks, {broken['hangs']} hangs",
        **{f"failed: seed {each['seed']}": each["reason"] for each in [*failed, *planned["faults"]]}}
    return {"benchmark": "fuzz", "table": table, "networks": networks, "exact": counts[EXACT],
            "refused": counts[REFUSED], "failed": counts[FAILED] + graphed[FAILED], "files": files,
            "graphs": {"count": graphs, **graphed, "compared": dict(sides)}, "tracebacks": broken["tracebacks"],
            "hangs": broken["hangs"], "compared": dict(compared), "refusals": [
                asdict(each) for each in [*trials, *crossed] if each.reason and each.outcome != FAILED],
            "failures": failed,
            "paces": planned, "hostile": broken}
