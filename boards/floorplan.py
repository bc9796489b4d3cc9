"""A picture of a device: where nextpnr has put the cells of a design, by what they are."""
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

__all__ = ["KINDS", "Placed", "picture", "placed"]

KINDS = {
    "multipliers": ("#c0392b", ("MULT", "MAC16", "DSP", "ALU54")),
    "block RAM": ("#2471a3", ("DP16KD", "RAM40", "ICESTORM_RAM", "BSRAM", "SDP", "DPB", "PROM")),
    "look-up table RAM": ("#7d3c98", ("RAMW", "RAM16", "DPR16")),
    "pins and clocks": ("#b7950b", ("IO", "PLL", "GB", "DCC", "OSC")),
    "logic": ("#1e8449", ("",)),
}
"""Colour of each kind of cell, and what the types of its cells contain; the first one that fits counts."""

SIZE = 8
"""Pixels of a tile."""

LETTER = 6
"""Pixels that a letter of the legend takes, at most on average."""


class Placed(NamedTuple):
    """A cell's tile, and its kind."""

    x: int
    y: int
    kind: str


def placed(netlist: Path, top: str = "top") -> list[Placed]:
    """The cells of a netlist that nextpnr wrote, those that have a place."""
    cells = json.loads(netlist.read_text("utf-8"))["modules"][top]["cells"].values()
    found = []
    for cell in cells:
        at = re.match(r"X(\d+)/?Y(\d+)", cell["attributes"].get("NEXTPNR_BEL", ""))
        if at:
            found.append(Placed(int(at[1]), int(at[2]), _kind(cell["type"])))
    return found


def _kind(cell: str) -> str:
    return next(kind for kind, (_, parts) in KINDS.items() if any(part in cell for part in parts))


def picture(cells: Iterable[Placed], title: str) -> str:
    """An SVG: a square for each tile, the darker the more cells it holds."""
    title = escape(title)
    tiles: dict[tuple[int, int], list[str]] = {}
    for x, y, kind in cells:
        tiles.setdefault((x, y), []).append(kind)
    wide, high = (max((at[n] for at in tiles), default=0) + 1 for n in range(2))
    height = high * SIZE + 40
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{max(480, wide * SIZE)}" height="{height}" '
             'font-family="sans-serif" font-size="11">',
             f"<title>{title}</title>", '<rect width="100%" height="100%" fill="#fff"/>',
             f'<rect width="{wide * SIZE}" height="{high * SIZE}" fill="#f4f4f4"/>']
    for (x, y), kinds in sorted(tiles.items()):
        kind = min(kinds, key=list(KINDS).index)
        lines.append(f'<rect x="{x * SIZE}" y="{y * SIZE}" width="{SIZE - 1}" height="{SIZE - 1}" '
                     f'fill="{KINDS[kind][0]}" fill-opacity="{min(1.0, 0.3 + 0.1 * len(kinds)):.1f}"/>')
    lines.append(f'<text x="2" y="{height - 22}">{title}</text>')
    left = 2
    for kind, (colour, _) in KINDS.items():
        lines += [f'<rect x="{left}" y="{height - 14}" width="9" height="9" fill="{colour}"/>',
                  f'<text x="{left + 12}" y="{height - 5}">{kind}</text>']
        left += 26 + LETTER * len(kind)
    return "\n".join([*lines, "</svg>", ""])
