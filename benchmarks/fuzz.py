"""Random networks, golden against C and against Verilog in two simulators; others on shared arrays, planned against
measured cycles; and damaged files, which must be refused."""
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import hostile, paces
from benchmarks.draw import Drawn, draw
from benchmarks.networks import affordable
from circulant.hw.c import Emulator
from circulant.sim.cosim import icarus, verify
from circulant.sim.golden.network import Network
from circulant.sim.quantize.quantize import quantize
from circulant.sim.refusal import Refusal
from circulant.sim.vectors import Vectors

__all__ = ["measure", "trial"]

EXACT, REFUSED, FAILED = "exact", "refused", "failed"

IN_C = ("perceptron", "recurrent")
"""Kinds of models that the C target takes."""


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
    """Golden against C, where the C target takes the network of a seed, else against Verilog in Icarus.

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
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        return Trial(seed, drawn.title, FAILED, f"{type(error).__name__} at {where}: {error}", tuple(compared))
    if not compared:
        return Trial(seed, drawn.title, REFUSED, "; ".join(reasons))
    return Trial(seed, drawn.title, EXACT, "; ".join(reasons), tuple(compared))


def _golden(drawn: Drawn) -> tuple[Network, Vectors]:
    network = quantize(drawn.model, drawn.data, **drawn.widths)
    network = network.with_argmax() if drawn.argmax else network
    return network, network.vectors(drawn.data)


def _comparisons(drawn: Drawn, verilog: bool) -> list[tuple[str, Callable[[Network, Vectors], int]]]:
    """Comparisons by name; each returns the number of words that differ. What the C target does not take goes through
    Icarus, which needs no compiler."""
    def c(network: Network, vectors: Vectors) -> int:
        return int((Emulator(network).run_integers(vectors.inputs) != vectors.outputs).sum())

    def simulated(simulator: Callable[[Path, Vectors], int]) -> Callable[[Network, Vectors], int]:
        def differs(network: Network, vectors: Vectors) -> int:
            design = affordable(network, drawn.multipliers, drawn.streams, drawn.data.shape[1])
            with tempfile.TemporaryDirectory(prefix="circulant-fuzz-") as folder:
                return simulator(design.write(Path(folder) / "design"), vectors)
        return differs

    chosen: list[tuple[str, Callable[[Network, Vectors], int]]] = [("C", c)] if drawn.kind in IN_C else []
    if verilog or not chosen:
        chosen += [("Icarus", simulated(lambda folder, vectors: icarus.run(folder, vectors).mismatches))]
    if verilog:
        chosen += [("Verilator", simulated(lambda folder, vectors: verify(folder, vectors).mismatches))]
    return chosen


def measure(*, networks: int, hardware: int, files: int, shared: int = 0, first: int = 0,
            note: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """Networks of the seeds from ``first`` on, and damaged files: counts, what was refused, and what failed.

    Parameters:
        hardware: how many of the networks, evenly spread over the kinds, are also generated and simulated.
        shared: other networks, see `benchmarks.paces.measure`.
        note: told each outcome.
    """
    trials = []
    for n in range(networks):
        trials.append(trial(first + n, verilog=n * hardware // networks != (n + 1) * hardware // networks))
        note(f"{trials[-1].seed}: {trials[-1].outcome} ({', '.join(trials[-1].compared) or trials[-1].reason}): "
             f"{trials[-1].title}")
    counts = Counter(each.outcome for each in trials)
    compared = Counter(name for each in trials for name in each.compared)
    planned = paces.measure(count=shared, first=first, note=note)
    broken = hostile.measure(count=files, seed=first, note=note)
    failed = [asdict(each) for each in trials if each.outcome == FAILED]
    table = {
        "networks": f"{networks}: {counts[EXACT]} exact, {counts[REFUSED]} refused, {counts[FAILED]} failed",
        "compared with the golden model": ", ".join(f"{count} by {name}" for name, count in compared.items()),
        "planned and measured cycles": f"{shared}: {planned['equal']} equal, {planned['different']} different, "
                                       f"{planned['refused']} refused, {planned['failed']} failed; "
                                       f"{planned['shared']} with shared arrays",
        "damaged files": f"{files}: {broken['refused']} refused, {broken['taken']} harmless, "
                         f"{broken['tracebacks']} tracebacks, {broken['hangs']} hangs",
        **{f"failed: seed {each['seed']}": each["reason"] for each in [*failed, *planned["faults"]]}}
    return {"benchmark": "fuzz", "table": table, "networks": networks, "exact": counts[EXACT],
            "refused": counts[REFUSED], "failed": counts[FAILED], "files": files, "tracebacks": broken["tracebacks"],
            "hangs": broken["hangs"], "compared": dict(compared), "refusals": [
                asdict(each) for each in trials if each.reason and each.outcome != FAILED], "failures": failed,
            "paces": planned, "hostile": broken}
