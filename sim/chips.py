"""A network over several chips on disk: a folder for each chip, one of all of them with models of their links, and
``partition.json``, which says what each has and when it works.

`circulant.hw.chips.folders` writes them.
"""
import random
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict, cast

from circulant.sim import artifact, design
from circulant.sim.files import files
from circulant.sim.files.schema import SHA, Int, Listing, Mapped, Null, Number, Table, Text
from circulant.sim.refusal import Refusal

__all__ = ["CHIP", "FOLDER", "KIND", "LATENCY", "PARTITION", "SEED", "SLOWER", "SYSTEM", "VERSION",
           "ChipFigures", "LinkFigures", "Partition", "chips_of", "drawn", "hash_of", "partition_of", "roughened",
           "setting"]

FOLDER, SYSTEM, PARTITION = "chips", "system", "partition.json"
"""The folder in that of a run, that of all chips and their links within it, and what says how they are."""

CHIP, KIND, VERSION = "circulant-chip", "circulant-partition", 1

LATENCY, SEED = 13, 31
"""Bits of a setting of pins, see `setting`."""

SLOWER = 50
"""Cycles that pins may take where they were planned with fewer: 500 ns at 100 MHz. A link is right with them, and
slower."""

_NAME, _CYCLES = Text(100), Number(0, 1e12)
_CHIP = Table({"network": SHA, "part": SHA, "chip": _NAME, "number": Int(0, 1 << 16), "chips": Int(1, 1 << 16),
               "top": Text(200), "verilog": Listing(Text(250)), "images": Listing(Text(250)), "files": Mapped(SHA)},
              open=True)
_PARTITION = Table({
    "network": SHA, "carrier": Text(20), "places": Listing(Text()), "period": _CYCLES, "latency": Null(_CYCLES),
    "estimates": Listing(_NAME),
    "chips": Listing(Table({"name": _NAME, "device": Text(100), "layers": Listing(Text()), "period": _CYCLES,
                            "multipliers": Int(0, 1 << 40), "memory_bits": Int(0, 1 << 60)}, open=True), 1, 64),
    "links": Listing(Table({"start": _NAME, "end": _NAME, "words": _CYCLES, "bits": Int(1, 1 << 16),
                            "latency": Int(0, 1 << 16), "load": Number(0)}, open=True)),
    "rows": Mapped(Listing(Listing(_CYCLES, 2, 2)))}, open=True)


class ChipFigures(TypedDict):
    """A chip with its part: ``period`` of that alone; ``device`` is empty where none was named."""

    name: str
    device: str
    layers: list[str]
    period: float
    multipliers: int
    memory_bits: int


class LinkFigures(TypedDict):
    """One direction of a link: ``load`` is the share of the cycles in which it carries words."""

    start: str
    end: str
    bits: int
    latency: int
    words: int
    load: float


class Partition(TypedDict):
    """A network over chips: ``rows`` has for each chip and link when it works on a sample, in cycles from the sample's
    first beat; ``carrier`` is what links go over."""

    network: str
    carrier: str
    places: list[str]
    period: float
    latency: int | None
    estimates: list[str]
    chips: list[ChipFigures]
    links: list[LinkFigures]
    rows: Mapping[str, list[list[int]]]


def setting(latency: int, seed: int = 0) -> int:
    """The word of the image that says how pins of a link are: their cycles, and, where it is not 0, the seed by which
    they lose, double and spoil words."""
    return latency | seed << LATENCY


def drawn(links: Mapping[str, int], seed: int) -> dict[str, tuple[int, int]]:
    """Latency and seed of each way of pins, drawn: up to 500 ns at 100 MHz, or as many cycles as planned.

    Parameters:
        links: planned cycles by the name of the image, as the manifest of the circuit of all chips has them.
    """
    rng = random.Random(seed)
    return {name: (rng.randint(0, max(planned, SLOWER)), rng.randrange(1, 1 << SEED)) for name, planned in
            sorted(links.items())}


def partition_of(folder: str | Path, network: str) -> Partition:
    """
    Parameters:
        network: hash of the whole.

    Raises:
        Refusal: when it is missing, damaged, or of another network.
    """
    path = Path(folder) / PARTITION
    if not path.exists():
        raise Refusal(f"{folder} must hold the chips of a network, but there is no {PARTITION}; run circulant "
                      "partition first")
    body = cast(Partition, artifact.read_json(path, KIND, VERSION, _PARTITION))
    _require(path, body["network"], network)
    return body


def chips_of(folder: str | Path, network: str) -> dict[int, str]:
    """The names of the chips in a folder by their numbers, when every file is as it was generated.

    Parameters:
        network: hash of the whole.

    Raises:
        Refusal: when there is none, a file is missing or changed, or a part is of another network.
    """
    folder, found = Path(folder), dict[int, str]()
    for path in sorted(folder.glob("*/manifest.json")):
        if path.parent.name == SYSTEM:
            continue
        body = artifact.read_json(path, CHIP, VERSION, _CHIP)
        _require(path, body["network"], network)
        for name, sha in body["files"].items():
            file = path.parent / name
            if not file.is_file() or files.sha256(file) != sha:
                raise Refusal(f"{file} must be as it was generated, but it is missing or changed; partition the run "
                              "again")
        found[body["number"]] = body["chip"]
    if not found:
        raise Refusal(f"{folder} must hold a folder for each chip, but there is none; run circulant partition first")
    return found


def hash_of(folder: str | Path) -> str:
    """The hash of a partition, which covers all files of its chips and of the circuit of them all.

    Raises:
        Refusal: when a manifest is missing or damaged.
    """
    folder = Path(folder)
    system = {SYSTEM: design.read(folder / SYSTEM)["hash"]}
    return artifact.digest(system | {
        path.parent.name: artifact.read_json(path, CHIP, VERSION, _CHIP)["hash"]
        for path in sorted(folder.glob("*/manifest.json")) if path.parent.name != SYSTEM})


def roughened(folder: str | Path, into: Path, settings: Mapping[str, tuple[int, int]]) -> Path:
    """A copy of the circuit of all chips whose pins have other settings, of which no cycles are promised.

    Parameters:
        folder: of all chips.
        into: the folder of the copy, which is new.
        settings: latency and seed by the name of the image.
    """
    body: Mapping[str, object] = {**design.read(folder)}
    shutil.copytree(folder, into)
    for name, given in settings.items():
        (into / name).write_text(f"{setting(*given):0{-(-(LATENCY + SEED) // 4)}x}\n")
    now = design.read(folder)["files"] | {name: files.sha256(into / name) for name in settings}
    body = {**body, "files": now, "estimates": ["cycles"], "latency_spaced": None, "latency_contiguous": None}
    artifact.write_json(into / "manifest.json", design.KIND, design.VERSION,
                        {name: value for name, value in body.items() if name not in ("format", "version", "hash")})
    return into


def _require(path: Path, found: str, network: str) -> None:
    if found != network:
        raise Refusal(f"{path} must be of a part of network {network[:12]}…, but its part is of {found[:12]}…; "
                      "partition the run again")
