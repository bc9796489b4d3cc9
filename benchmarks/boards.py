"""Designs on boards: what nextpnr reaches and Yosys counts, and how far the estimate of a plan is from it."""
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from circulant.boards.board import board
from circulant.boards.build import build
from circulant.boards.device import device
from circulant.boards.estimate.estimate import Options, estimate
from circulant.estimate.networks import untrained
from circulant.experiment import load
from circulant.hw import generate
from circulant.run.sizing import options
from circulant.sim.golden.network import Network

__all__ = ["DESIGNS", "Placed", "measure"]


@dataclass(frozen=True)
class Placed:
    """An experiment on a board.

    Parameters:
        mhz: that nextpnr is asked for; 0 for the board's clock.
        sets: keys of the experiment that it changes.
    """

    experiment: str
    board: str
    mhz: float = 0.0
    sets: tuple[str, ...] = ()


FOLDED = ("hardware.family=ecp5", "board.device=LFE5U-85F", "hardware.multipliers=8", "hardware.levels=4",
          "hardware.objective=throughput")
"""The network of the iCEBreaker with an array for each layer, all of whose products take several cycles."""

DESIGNS = {
    "icebreaker-digits": Placed("icebreaker-digits", "icebreaker"),
    "ulx3s-digits": Placed("ulx3s-digits", "ulx3s-85f"),
    "ulx3s-folded": Placed("icebreaker-digits", "ulx3s-85f", sets=FOLDED),
    "ulx3s-keywords": Placed("ulx3s-keywords", "ulx3s-85f"),
    "ulx3s-mnist": Placed("ulx3s-mnist", "ulx3s-85f", 80),
    "primer20k-keywords": Placed("primer20k-keywords", "tang-primer-20k", 60),
}
"""The shipped experiments for boards, and a folded design."""


def measure(names: Sequence[str] = (), *, runs: str = "") -> dict[str, Any]:
    """Figures, and a table.

    Parameters:
        names: of `DESIGNS`; all of them where none is given.
        runs: a folder with run folders of these names: their designs and bitstreams are taken. Without it the designs
            have the weights that a training would start from, as clock and cells hardly depend on them.
    """
    found, errors = {}, []
    for name in names or DESIGNS:
        found[name], error = _measure(DESIGNS[name], Path(runs) / name if runs else None)
        errors.append(error)
    worst = {key: max((error[key] for error in errors), key=abs) for key in errors[0]}
    table = {name: f"{row['device']}: {row['fmax_mhz']:.1f} MHz, {row['dsp']:g} DSP blocks, {row['bram']:g} block "
                   f"RAMs, {row['lut']:,g} look-up tables, {row['ff']:,g} flip-flops, {row['seconds']:.0f} s"
             for name, row in found.items()}
    table["greatest error of an estimate"] = ", ".join(f"{key} {value:+.0%}" for key, value in worst.items())
    return {"benchmark": "boards", "table": table, "designs": found, "estimate_error": worst}


def _measure(placed: Placed, run: Path | None) -> tuple[dict[str, Any], dict[str, float]]:
    """Figures of a design, and by resource the share by which its estimate, without the link, is more than they."""
    experiment = load(run) if run else load(placed.experiment, placed.sets)
    network = Network.load(run) if run else untrained(experiment)
    given = options(experiment, network)
    with ExitStack() as stack:
        folder = run or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="circulant-benchmark-")))
        hardware = folder / "hardware"
        if run is None:
            generate(network, **given).write(hardware)
        made = build(hardware, placed.board, folder / "boards" / placed.board, mhz=placed.mhz, slow=True)
    chosen = device(board(placed.board).device)
    foreseen = estimate(network, chosen, Options(**{key: given[key] for key in Options.__dataclass_fields__}))
    row: dict[str, Any] = {
        "device": chosen.name, "fmax_mhz": made.reached_mhz, "dsp": made.used["dsps"],
        "bram": made.used["block_rams"], "lut": made.used["luts"], "ff": made.used["flip_flops"],
        "seconds": round(made.seconds, 1)}
    told = {"dsp": foreseen.taken["dsps"].used, "bram": foreseen.taken["block_rams"].used,
            "lut": foreseen.taken["luts"].used, "ff": foreseen.taken["flip_flops"].used, "fmax": foreseen.mhz}
    return row, {key: value / max(1, row["fmax_mhz" if key == "fmax" else key]) - 1 for key, value in told.items()}
