"""Random networks as Verilog under Verilator against their golden models, with stalls, resets, interleaved streams.

Cells, directions, sizes that are no multiples of the block sizes, block sizes, widths and budgets are drawn at random;
the smallest budgets fold a block product over several cycles.
"""
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.draw import BLOCKS, CELLS, recurrent_layers
from circulant.hw import generate
from circulant.hw.design import Design
from circulant.hw.plan.layer_plan import LayerPlan, PairPlan
from circulant.sim.cosim import verify
from circulant.sim.golden.network import Network
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real.float_model import Model
from circulant.sim.refusal import Refusal

__all__ = ["Drawn", "affordable", "draw", "measure"]

STEPS = 5


@dataclass(frozen=True)
class Drawn:
    """A network, and the design that was made of it.

    Parameters:
        cells: of its recurrent layers.
        widths: as `circulant.sim.quantize.quantize.Widths` has them.
    """

    network: Network
    design: Design
    cells: tuple[str, ...]
    blocks: tuple[int, ...]
    widths: dict[str, int]
    streams: int

    @property
    def title(self) -> str:
        sizes = " → ".join(str(layer.outputs) for layer in self.network.stages)
        blocks = ", ".join(map(str, self.blocks))
        return (f"{', '.join(self.cells)}: {self.network.flow.size} → {sizes}, k = {blocks}, "
                f"{self.widths['weight_bits']}×{self.widths['activation_bits']} bits"
                + (f", {self.streams} streams" if self.streams > 1 else ""))

    @property
    def fold(self) -> int:
        """The greatest one of its arrays."""
        plans = [one for plan in self.design.plans for one in (
            (plan.forward, plan.backward) if isinstance(plan, PairPlan) else (plan,))]
        return max(plan.shape.fold for plan in plans if isinstance(plan, LayerPlan))


def draw(seed: int) -> Drawn:
    """The network of a seed, which is drawn anew while its widths contradict each other."""
    rng = np.random.default_rng((11, seed))
    for _ in range(50):
        cells = [CELLS[seed % len(CELLS)], *map(str, rng.choice(CELLS, rng.integers(2)))]
        streams = 1 if any("bidirectional" in cell for cell in cells) else int(rng.integers(1, 4))
        blocks = [int(k) for k in rng.choice(BLOCKS, len(cells) + 1)]
        widths = {"weight_bits": int(rng.integers(2, 19)), "activation_bits": int(rng.integers(4, 21)),
                  "spectrum_bits": int(rng.integers(2) * rng.integers(6, 25)), "twiddle_bits": int(rng.integers(4, 19))}
        inputs = int(rng.integers(1, 12))
        model = Model.chain(f"random_{seed}", inputs, True, recurrent_layers(rng, inputs, cells, blocks))
        try:
            network = quantize(model, rng.normal(0, 1, (8, STEPS, inputs)), **widths)
        except Refusal:
            continue
        design = affordable(network, int(rng.choice([1, 8, 40])), streams)
        return Drawn(network, design, cells=tuple(cells), blocks=tuple(blocks), widths=widths, streams=streams)
    raise AssertionError("None of the widths fits")


def affordable(network: Network, multipliers: int, streams: int, max_steps: int = STEPS, *,
               beat_blocks: int = 1, objective: str = "throughput") -> Design:
    """With the first budget, from one on and twice as large each time, that suffices."""
    while True:
        try:
            return generate(network, multipliers=multipliers, streams=streams, max_steps=max_steps,
                            objective=objective, beat_blocks=beat_blocks)
        except Refusal as refusal:
            if "needs at least" not in str(refusal):
                raise
            multipliers *= 2


def measure(*, count: int, first: int, note: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """Networks of the seeds from ``first`` on: figures of each, and a table.

    Parameters:
        note: told each network before it is built.
    """
    rows: list[dict[str, Any]] = []
    for seed in range(first, first + count):
        drawn = draw(seed)
        note(f"{seed}: {drawn.title}, {drawn.design.multipliers} multipliers, fold {drawn.fold}")
        x = np.random.default_rng(seed).normal(0, 1, (8 * drawn.streams, STEPS, drawn.network.flow.size))
        start = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="circulant-benchmark-") as folder:
            result = verify(drawn.design.write(Path(folder) / "design"), drawn.network.vectors(x))
        rows.append({"seed": seed, "network": drawn.title, "multipliers": drawn.design.multipliers, "fold": drawn.fold,
                     "words": result.words_compared, "mismatches": result.mismatches,
                     "seconds": time.perf_counter() - start})
    table = {row["network"]: f"{row['words']:,} words, {row['mismatches']} mismatches; {row['multipliers']} multipliers"
                             f", fold {row['fold']}" for row in rows}
    table["all"] = f"{sum(row['words'] for row in rows):,} words, {sum(row['mismatches'] for row in rows)} mismatches"
    return {"benchmark": "networks", "table": table, "networks": rows}
