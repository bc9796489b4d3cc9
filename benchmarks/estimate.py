"""Estimates of `circulant estimate` against what Yosys makes of designs and what nextpnr's router reaches.

The designs of Yosys are those of ``python -m benchmarks logic``, whose figures are read; some were held out of all
fits. Clocks are routed here, of ten of them that fit an LFE5U-85F with room to spare, so that the router is not what
limits them.
"""
import json
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NotRequired, TypedDict

from benchmarks.logic import LOGIC, Measured, designs, read
from benchmarks.synthesis import foretold, occupied
from circulant.boards.placement import place
from circulant.hw import Design
from circulant.hw.plan.families import FAMILIES
from circulant.hw.stream.pipeline import LEVELS

__all__ = ["measure"]

FAMILY, DEVICE = "ecp5", "LFE5U-85F"
"""Whose clocks are routed."""

MHZ = FAMILIES[FAMILY].mhz(LEVELS)

ROUTED = (1, 2, 5, 6, 7, 8, 9, "images 0", "images 1", "images 3")
"""Keys of the designs that are routed, see `benchmarks.logic.designs`; all have `LEVELS` levels of logic."""

NAMES = ("dsps", "block_rams", "luts", "flip_flops")


class Estimated(TypedDict):
    """A design: by family its figures, see `NAMES`, estimated and found, and the clock in MHz of those routed."""

    design: str
    fitted: list[str]
    estimated: dict[str, dict[str, float]]
    found: dict[str, dict[str, float]]
    routed_mhz: NotRequired[float]


def measure(*, logic: Path = LOGIC, routes: bool = True, kept: Path | None = None, mhz: float = 120.0,
            note: Callable[[str], None] = lambda text: None) -> Mapping[str, object]:
    """Rows of figures, errors by family, and a table.

    Parameters:
        logic: what ``python -m benchmarks logic`` found.
        routes: place and route ten designs, some minutes each.
        kept: figures of an earlier measurement, whose clocks stand for those that are not routed anew.
        mhz: the clock that nextpnr is asked for.
    """
    clocked = {} if kept is None else {row["design"]: row["routed_mhz"] for row in json.loads(
        kept.read_text("utf-8"))["designs"] if "routed_mhz" in row}
    measured, rows = {row["design"]: row for row in read(logic)}, list[Estimated]()
    for key, title, make in designs():
        note(title)
        known = measured[title]
        row: Estimated = {"design": title, "fitted": known["fitted"], "estimated": {
            family: _estimates(known, family) for family in known["found"]}, "found": {
            family: {"dsps": each["dsps"], "block_rams": each["block_rams"], "luts": occupied(family, each),
                     "flip_flops": each["flip_flops"]} for family, each in known["found"].items()}}
        if routes and key in ROUTED:
            row["routed_mhz"] = _routed(make(), mhz)
            note(f"  {row['routed_mhz']:.1f} MHz routed, {MHZ:.1f} MHz estimated")
        elif title in clocked:
            row["routed_mhz"] = clocked[title]
        rows.append(row)
    families = list(rows[0]["found"])
    errors = {family: _errors(rows, family) for family in families}
    apart = {family: [row for row in rows if family not in row["fitted"]] for family in families}
    clocks = [MHZ / row["routed_mhz"] - 1 for row in rows if "routed_mhz" in row]
    return {"benchmark": "estimate", "table": dict(_table(rows, errors, clocks)),
            "errors": {family: {"designs": len(rows), **each} for family, each in errors.items()},
            "held_out": {family: {"designs": len(some), **_errors(some, family)} for family, some in apart.items()},
            "clock": {"family": FAMILY, "designs": len(clocks), **_spread(clocks)} if clocks
            else None, "designs": rows}


def _estimates(row: Measured, family: str) -> dict[str, float]:
    """The estimate of a measured design."""
    demand = FAMILIES[family].demand(foretold(row))
    assert demand.luts is not None and demand.flip_flops is not None
    return {"dsps": demand.dsps, "block_rams": demand.block_rams, "luts": demand.luts.count,
            "flip_flops": demand.flip_flops.count}


def _errors(rows: list[Estimated], family: str) -> dict[str, dict[str, float]]:
    return {name: _spread([row["estimated"][family][name] / row["found"][family][name] - 1 for row in rows
                           if row["found"][family][name]]) for name in NAMES}


def _routed(design: Design, mhz: float) -> float:
    with tempfile.TemporaryDirectory(prefix="circulant-benchmark-") as temporary:
        return place(design.write(Path(temporary) / "design"), DEVICE, target_mhz=mhz).mhz


def _spread(errors: list[float]) -> dict[str, float]:
    return {"rms": round(math.sqrt(sum(each ** 2 for each in errors) / len(errors)), 4),
            "worst": round(max(errors) if max(errors) >= -min(errors) else min(errors), 4)}


def _table(rows: list[Estimated], errors: Mapping[str, Mapping[str, Mapping[str, float]]], clocks: list[float]
           ) -> Iterator[tuple[str, str]]:
    for row in rows:
        for family, found in row["found"].items():
            made = row["estimated"][family]
            clock = f"; {MHZ:.1f} and {row['routed_mhz']:.1f} MHz" if family == FAMILY and "routed_mhz" in row else ""
            yield f"{row['design']}, {family}", ", ".join(
                f"{made[name]:,g} and {found[name]:,g} {name}" for name in NAMES) + clock
    for family, each in errors.items():
        yield f"errors, {family}", ", ".join(
            f"{name} {each[name]['rms']:.1%} rms, {each[name]['worst']:+.1%} worst" for name in NAMES)
    if clocks:
        found = _spread(clocks)
        yield "errors, clock", f"{found['rms']:.1%} rms, {found['worst']:+.1%} worst, of {len(clocks)} designs"
