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
from circulant.boards.synthesis import FAMILIES, synthesize
from circulant.estimate.networks import untrained
from circulant.experiment import load
from circulant.hw import generate
from circulant.run.sizing import options
from circulant.sim.document import Document
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

SHORT = {"dsp": "dsps", "bram": "block_rams", "lut": "luts", "ff": "flip_flops"}
"""Names of resources in the figures, and elsewhere."""


def measure(names: Sequence[str] = (), *, runs: str | None = None) -> Document:
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
                   f"RAMs, {row['lut']:,g} look-up tables, {row['ff']:,g} flip-flops, {row['seconds']:.0f} s; "
                   f"of these for the link {row['link']['bram']:g}, {row['link']['lut']:,g} and {row['link']['ff']:,g}"
             for name, row in found.items()}
    table["greatest error of an estimate"] = ", ".join(f"{key} {value:+.0%}" for key, value in worst.items())
    return {"benchmark": "boards", "table": table, "designs": found, "estimate_error": worst}


def _measure(placed: Placed, run: Path | None) -> tuple[dict[str, Any], dict[str, float]]:
    """Figures of a design on its board, with what the link to the host takes of them; and by resource the share by
    which its estimate is more than Yosys makes of the design alone, by clock than the board's."""
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
        alone = FAMILIES[chosen.family].uses(synthesize(hardware, chosen.family).cells, SHORT.values())
    foreseen = estimate(network, chosen, Options(**{key: given[key] for key in Options.__dataclass_fields__}))
    taken = {name: made.used[long] for name, long in SHORT.items()}
    row: dict[str, Any] = {
        "device": chosen.name, "fmax_mhz": made.reached_mhz, **taken, "seconds": round(made.seconds, 1),
        "link": {name: taken[name] - alone[long] for name, long in SHORT.items()}}
    errors = {name: foreseen.taken[long].used / max(1, alone[long]) - 1 for name, long in SHORT.items()}
    return row, errors | {"fmax": foreseen.mhz / made.reached_mhz - 1}
