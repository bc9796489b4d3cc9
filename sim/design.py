"""A generated design on disk: ``manifest.json``, and the files that it names and hashes.

Whoever reads a design reads it here, so that nothing is simulated, synthesized or reported that is not what was
generated. `circulant.hw.design` writes it.
"""
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, cast

from circulant.sim import artifact
from circulant.sim.configuration import CONFIGURATION
from circulant.sim.files import files
from circulant.sim.files.schema import (
    SHA,
    Anything,
    Choice,
    Flag,
    Int,
    Listing,
    Mapped,
    Null,
    Number,
    Table,
    Text,
    Where,
)
from circulant.sim.passes.rules import COUNT, EXTENT, FORMAT, NAME, SIZE
from circulant.sim.refusal import Refusal

__all__ = ["CYCLES", "KIND", "MANIFEST", "RESOURCES", "VERSION", "Latencies", "LayerEntry", "Manifest", "Signal",
           "Stream", "hashes", "ports", "read", "require_single"]

KIND = "circulant-design"
VERSION = 2

_IDENTIFIER = Text(200, r"[A-Za-z_][A-Za-z0-9_$]*", "an identifier of Verilog")
_FILE = Text(250, r"[^/\\\x00-\x1f.][^/\\\x00-\x1f]*", "a file, named without its folder")
_PORT = {"prefix": _IDENTIFIER, "elements_per_beat": EXTENT, "container_bits": Int(1, 64), "format": FORMAT,
         "elements": SIZE, "beats": SIZE}

CYCLES = Number(0, 1e12)
"""Clock cycles of a plan or a measurement: hours, at any clock."""

_FURTHER = Listing(Table({**_PORT, "name": NAME, "per": Choice(("step", "sequence"))},
                         {"vectors": EXTENT, "pixels": EXTENT}, open=True), 1, 1000)
"""Ports of a design beside its first input and output."""

_MANY = Int(1, 1 << 40)
_ALIKE = Listing(_MANY, 3, 3)
_PLACED = Where(Listing(Anything(), 4, 4), lambda entry: all(map(_MANY.holds, entry[:3])) and isinstance(entry[3], str),
                "a list of three integers from 1 to 2^40 and a text")

RESOURCES = Table({"products": Listing(_ALIKE), "memories": Listing(_PLACED), "logic": Mapped(COUNT)},
                  {"pairs": Listing(_ALIKE)})
"""The parts of a design: how many of each size."""

_SIGNALS = {"tdata": False, "tvalid": False, "tready": True, "tlast": False}
"""Signals of a stream, and whether they go against it."""

_SIGNAL = Table({"name": _IDENTIFIER, "direction": Choice(("in", "out")), "bits": Int(1, 1 << 22)}, open=True)

MANIFEST = Table({
    "network": SHA, "top": _IDENTIFIER, "clock": _IDENTIFIER, "reset": _IDENTIFIER,
    "verilog": Listing(_FILE, 1, 1000), "images": Listing(_FILE), "files": Mapped(SHA),
    "input": Table(_PORT, {"pixels": EXTENT, "name": NAME}, open=True),
    "output": Table(
        {**_PORT, "per": Choice(("step", "sequence"))}, {"vectors": EXTENT, "name": NAME}, open=True),
    "streams": EXTENT, "max_steps": Null(Int(1, 1 << 40)),
    "layers": Listing(Table({"cycles": CYCLES}, {"kind": Text(100), "limit": Text()}, open=True)),
}, {"ports": Listing(_SIGNAL), "resources": RESOURCES, "name": NAME, "over_images": Flag(), "late": Flag(),
    "more_inputs": _FURTHER, "more_outputs": _FURTHER,
    "configuration": CONFIGURATION, "multipliers": COUNT, "memory_bits": COUNT, "dsp_blocks": COUNT,
    **dict.fromkeys(("latency_spaced", "latency_contiguous"), Null(Int(0, 1 << 40))),
    "estimates": Listing(Text(100)), "links": Mapped(COUNT), "repeats": Table({"after": EXTENT, "steps": EXTENT}),
    "bus": Table({"verilog": Listing(_FILE, 1, 10), "top": _IDENTIFIER}, open=True)}, open=True)
"""The rules of the part of a manifest that is read; it says more, for people."""


class Signal(TypedDict):
    """A port of the top: its direction is "in" or "out"."""

    name: str
    direction: str
    bits: int
    meaning: str


class Stream(TypedDict, total=False):
    """A stream of the top, or of the C: what goes through it."""

    prefix: str
    name: str
    elements_per_beat: int
    container_bits: int
    format: dict[str, int]
    elements: int
    beats: int
    per: str
    pixels: int
    vectors: int
    type: str


class Latencies(TypedDict, total=False):
    """The latencies of a sample, None where they are not planned; ``estimates`` names those that are no exact plan."""

    latency_spaced: int | None
    latency_contiguous: int | None
    estimates: list[str]


class LayerEntry(TypedDict, total=False):
    """A layer: its plan, the cycles of a step or an image, what limits them, and the layers within it."""

    name: str
    kind: str
    per: str
    cycles: float
    floor: int
    multipliers: int
    limit: str
    elements: int
    rows: int
    columns: int
    positions: int
    blocks: int
    chains: int
    fold: int
    lines: int
    pixels: int
    chart: Mapping[str, Any]
    waiting: Any
    forward: "LayerEntry"
    backward: "LayerEntry"
    body: "list[LayerEntry]"
    shortcut: "list[LayerEntry]"


class Manifest(Latencies, total=False):
    """The manifest of a design: the part that is read is held to `MANIFEST`."""

    hash: str
    name: str
    network: str
    top: str
    verilog: list[str]
    images: list[str]
    files: dict[str, str]
    clock: str
    reset: str
    ports: list[Signal]
    input: Stream
    output: Stream
    more_inputs: list[Stream]
    more_outputs: list[Stream]
    multipliers: int
    memory_bits: int
    multiplications: dict[str, int]
    streams: int
    max_steps: int | None
    over_images: bool
    layers: list[LayerEntry]
    repeats: dict[str, int]
    links: dict[str, int]
    configuration: Mapping[str, Any]
    bus: Mapping[str, Any]
    dsp_packing: str
    dsp_blocks: int
    resources: Mapping[str, Any]
    alternatives: Sequence[Mapping[str, Any]]
    family: str
    objective: str
    clock_gating: bool
    late: bool
    protection: str
    beat_blocks: int
    latency_asked: int


def hashes(contents: Mapping[str, bytes]) -> dict[str, str]:
    """SHA-256 of files by name, for the field ``files``."""
    return {name: hashlib.sha256(data).hexdigest() for name, data in sorted(contents.items())}


def read(folder: str | Path) -> Manifest:
    """The manifest of a design (with its ``hash``, which covers all files), when every file is as it was generated.

    Raises:
        Refusal: when a file is missing or changed, or the manifest is damaged or of another version.
    """
    folder = Path(folder)
    path = folder / "manifest.json"
    body = cast(Manifest, artifact.read_json(path, KIND, VERSION, MANIFEST))
    bus = body.get("bus", {}).get("verilog", [])
    named = [*body["verilog"], *body["images"], *bus]
    if sorted(named) != sorted(body["files"]):
        also = ", 'bus'" if bus else ""
        raise Refusal(f"{path}: field 'files' must have the hash of each file of 'verilog' and 'images'{also}, and no "
                      "other; generate the design again")
    for name in named:
        _check(folder / name, body["files"][name], path)
    return body


def ports(body: Mapping[str, Any]) -> dict[str, Signal]:
    """The ports of a design by name, as its manifest says.

    Raises:
        Refusal: when they are not those of its streams.
    """
    found = {port["name"]: port for port in body.get("ports", [])}
    wanted = {body["clock"]: ("in", 1), body["reset"]: ("in", 1)}
    into, out = ("in", "out"), ("out", "in")
    for stream, ends in ((body["input"], into), *((each, into) for each in body.get("more_inputs", ())),
                         (body["output"], out), *((each, out) for each in body.get("more_outputs", ()))):
        width = stream["elements_per_beat"] * stream["container_bits"]
        wanted |= {f"{stream['prefix']}_{signal}": (ends[against], width if signal == "tdata" else 1)
                   for signal, against in _SIGNALS.items()}
    for name, port in wanted.items():
        if name not in found or (found[name]["direction"], found[name]["bits"]) != port:
            raise Refusal(f"The manifest of a design must name its port {name} ({port[0]}, {port[1]} bits), but it "
                          "does not, or as another one; generate the design again")
    return found


def require_single(body: Mapping[str, Any], what: str) -> None:
    """
    Parameters:
        what: it is for, which takes a design with one input and one output alone.

    Raises:
        Refusal: when the design has more of them.
    """
    if more := [port["name"] for name in ("more_inputs", "more_outputs") for port in body.get(name, ())]:
        raise Refusal(f"{what} takes a design with one input and one output, but this one also has {', '.join(more)}; "
                      "connect its streams in a design of your own")


def _check(file: Path, sha: str, path: Path) -> None:
    try:
        found = files.sha256(file)
    except FileNotFoundError:
        raise Refusal(f"{file} must exist, since {path} names it, but it is missing; generate the design again"
                      ) from None
    except OSError as error:
        raise Refusal(f"{file} must be the file that {path} names, but it is not ({files.reason(error)}); generate the "
                      "design again") from None
    if found != sha:
        raise Refusal(f"{file} must be as it was generated (SHA-256 {sha[:12]}… in {path}), but it was changed or "
                      f"damaged ({found[:12]}…); generate the design again")
