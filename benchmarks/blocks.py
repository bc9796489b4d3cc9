"""Block size against area, energy and accuracy: the GRUs of the digits as standard cells, dense and block-circulant.

Each network is trained at every block size by the settings of its experiment, and mapped twice: with the same
multipliers, and with the fewest that keep the period of the dense one. Kept as `benchmarks.asic` keeps its figures.
"""
import bisect
import io
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks.asic import of_design
from circulant.hw import generate
from circulant.hw.plan_cache import plans_of
from circulant.sim import design
from circulant.sim.golden.network import Network
from circulant.sim.vectors import Vectors

__all__ = ["NETWORKS", "SAMES", "SIZES", "measure", "picture"]

NETWORKS = ("digits-gru", "fsdd-gru")

SIZES = (1, 4, 8, 16)

SAMES = ("multipliers", "period")

MULTIPLIERS = 60
"""Multipliers of all sizes in the first comparison."""

FAST = 180
"""Multipliers of the dense network in the second one, whose period the others keep."""

LEVELS, MHZ = 9, 100.0
"""Levels of logic between two registers, and the clock, which all reach."""

BITS = {"weight_bits": 8, "activation_bits": 16}


def measure(names: Sequence[str], sizes: Sequence[int], sames: Sequence[str], *, library: str, runs: Path, below: Path,
            samples: int = 2, note: Callable[[str], None] = lambda text: None) -> Mapping[str, Any]:
    """Figures of each network at each block size in the comparisons of `SAMES`.

    Parameters:
        runs: folder of trained run folders; what is missing is trained.
        below: folder of netlists and of what was measured before.
    """
    rows = []
    for name in names:
        dense = _network(name, 1, runs)[0]
        for size in sizes:
            network, vectors, score = _network(name, size, runs)
            for same in sames:
                budget = MULTIPLIERS if same == "multipliers" else _budget(network, _plan(dense, FAST)[0])
                note(f"{name}, k = {size}, the same {same}: {budget} multipliers")
                cells = _cells(network, vectors, budget, library, below=below, samples=samples, note=note)
                rows.append({"network": name, "block_size": size, "same": same, "accuracy": score, **cells})
    table = {f"{row['network']}, k = {row['block_size']}, same {row['same']}": _line(row) for row in rows}
    return {"benchmark": "blocks", "table": table, "library": library, "mhz": MHZ, "levels": LEVELS, "bits": BITS,
            "rows": rows}


def _network(name: str, size: int, runs: Path) -> tuple[Network, Vectors, float]:
    """A trained and quantized network, its vectors, and its score; trained where the run folder is missing."""
    folder = runs / f"{name}-k{size}"
    command = [sys.executable, "-m", "circulant"]
    if not (folder / "model.pt").exists():
        resume = ["--resume"] if (folder / "checkpoint" / "training.pt").exists() else []
        _carried([*command, "train", name, "--out", str(folder), "--set", f"compression.block_size={size}", *resume])
    record = folder / "quantization.json"
    found = json.loads(record.read_text()) if record.exists() else {}
    if any(found.get("experiment", {}).get("quantization", {}).get(key) != value for key, value in BITS.items()):
        _carried([*command, "quantize", str(folder), *(part for key, value in BITS.items()
                                                       for part in ("--set", f"quantization.{key}={value}"))])
        found = json.loads(record.read_text())
    return Network.load(folder), Vectors.load(folder / "vectors.npz"), float(found["accuracy"]["quantized"])


def _carried(command: list[str]) -> None:
    if subprocess.run(command).returncode:
        raise click.ClickException(f"{' '.join(command[2:])} failed; its message stands above")


def _plan(network: Network, multipliers: int) -> tuple[float, int]:
    """Cycles of a step, and multipliers."""
    plans = plans_of(network, multipliers=multipliers, levels=LEVELS, streams=1, packing="none",
                     objective="throughput", reloadable=False)
    return plans[0].cycles, sum(plan.multipliers for plan in plans)


def _budget(network: Network, period: float) -> int:
    """An even number of multipliers, by bisection, with which a step takes no longer than a period, and longer with two
    fewer."""
    return 2 * bisect.bisect_left(range(FAST), True, 8, key=lambda half: _plan(network, 2 * half)[0] <= period)


def _cells(network: Network, vectors: Vectors, budget: int, library: str, *, below: Path, samples: int,
           note: Callable[[str], None]) -> Mapping[str, Any]:
    made = generate(network, multipliers=budget, levels=LEVELS, clock_gating=True, objective="throughput")
    folder = made.write(below / f"{network.hash[:12]}-{budget}" / "design")
    figures = of_design(folder, folder.parent / library, library, mhz=MHZ, vectors=vectors, samples=samples, note=note)
    described = design.read(folder)
    counts = described["multiplications"]
    steps = float(vectors.first(samples).steps.mean())
    return {"multipliers": described["multipliers"], "cycles": described["layers"][0]["cycles"],
            "floor": described["layers"][0]["floor"],
            "multiplications": counts["per_step"] * steps + counts["per_sequence"]} | {
        key: value for key, value in figures.items() if key not in ("critical", "library")}


def _line(row: Mapping[str, Any]) -> str:
    return (f"{row['multipliers']} multipliers, {row['cycles']:g} cycles a step, {row['logic_um2'] / 1e6:.3f} mm² of "
            f"logic, {sum(row['area_um2'].values()) / 1e6:.3f} in all, {row['energy_nj_total']:.4g} nJ, "
            f"{row['accuracy']:.2%}")


def picture(figures: Mapping[str, Any]) -> bytes:
    """Energy of an inference by kind, for each network and comparison, with area and accuracy over each bar, as PNG."""
    from matplotlib.figure import Figure

    colors = {"logic": "#0072b2", "clock": "#d55e00", "ram": "#009e73", "registers": "#cc79a7", "rom": "#e69f00"}
    rows = figures["rows"]
    names, sames = (list(dict.fromkeys(row[key] for row in rows)) for key in ("network", "same"))
    figure = Figure(figsize=(9, 0.6 + 2.9 * len(names)), layout="constrained")
    for number, axes in enumerate(figure.subplots(len(names), len(sames), squeeze=False).ravel()):
        name, same = names[number // len(sames)], sames[number % len(sames)]
        mine = [row for row in rows if (row["network"], row["same"]) == (name, same)]
        bottom = [0.0] * len(mine)
        for kind, color in colors.items():
            parts = [row["energy_nj"][kind] for row in mine]
            axes.bar(range(len(mine)), parts, 0.6, bottom, color=color, label=kind)
            bottom = [low + part for low, part in zip(bottom, parts, strict=True)]
        for at, (row, top) in enumerate(zip(mine, bottom, strict=True)):
            axes.annotate(f"{top:,.0f} nJ\n{sum(row['area_um2'].values()) / 1e6:.2f} mm²\n{row['accuracy']:.1%}",
                          (at, top), (0, 3), textcoords="offset points", ha="center", fontsize=8)
        axes.set_ylim(0, 1.3 * max(bottom))
        axes.set_xticks(range(len(mine)), [f"k = {row['block_size']}\n{row['multipliers']} × {row['cycles']:g}"
                                           for row in mine])
        axes.set_title(f"{name}: the same {same}", fontsize=10, loc="left")
        axes.set_ylabel("nJ an inference")
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].legend(frameon=False, fontsize=8)
    figure.supxlabel("block size; multipliers × cycles of a step", fontsize=9)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()
