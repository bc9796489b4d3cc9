"""Timing closure: sizing, and where that ends short of the clock, another structure for what is late, and sizing."""
from collections.abc import Sequence
from pathlib import Path

from circulant.boards.asic.buffers import buffer
from circulant.boards.asic.cells.library import Library
from circulant.boards.asic.mapping import Settings
from circulant.boards.asic.netlist import Netlist
from circulant.boards.asic.timing.analysis import Analysis, Timing
from circulant.boards.asic.timing.restructuring import EFFORTS, restructured
from circulant.boards.asic.timing.sizing import ROUNDS, sized
from circulant.boards.flow import Show
from circulant.sim.refusal import ToolError

__all__ = ["closed"]

STRUCTURES = 6
"""Times that late gates get another structure, at the most."""


def closed(netlist: Netlist, library: Library, settings: Settings, *, file: Path, libraries: Sequence[str], work: Path,
           show: Show) -> Timing:
    """Change a netlist until the clock is met, or nothing more is won; returns what it reaches.

    Parameters:
        file: Verilog of the netlist, for OpenSTA, in the folder of the liberty files.
        libraries: their names.
        work: folder below it, for Yosys.

    Raises:
        Refusal, ToolError: as `Analysis`.
    """
    def analysed() -> Timing:
        netlist.write(file)
        show("timing", 0, ROUNDS)
        with Analysis(file, netlist.top, libraries, settings.mhz, scale=library.nanoseconds) as analysis:
            return sized(netlist, library, analysis, lambda number, found: show(
                "timing", number, ROUNDS, f"{found.mhz:.1f} MHz, {len(found.late)} late"))

    reached, effort = analysed(), 0
    for _ in range(STRUCTURES):
        if reached.slack >= 0 or effort == len(EFFORTS):
            break
        show("restructuring", 0, 0, f"{len(reached.late)} late ends")
        before = netlist.copy()
        late = {path.stages[-1].name for path in reached.late if path.stages}
        try:
            made = restructured(netlist, library, late, effort=effort, work=work, settings=settings,
                                libraries=[f"../{name}" for name in libraries])
        except ToolError:  # ABC gives up on some libraries; the netlist is as it was.
            effort += 1
            continue
        if made is None:
            break
        buffer(netlist, library)
        netlist.check(library)
        found = analysed()
        if (found.slack, -found.missing) > (reached.slack, -reached.missing):
            reached = found
        else:
            netlist.instances, netlist.ports = before.instances, before.ports
            effort += 1
    return reached
