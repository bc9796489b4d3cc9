"""Designs of a network over several chips: a folder for each chip, and one of all of them with their links, for
simulation."""
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from amaranth.lib.wiring import In

from circulant.hw.array.plans import LayerPlan
from circulant.hw.chips.chip import Chip, wires_of
from circulant.hw.chips.plans import Planned
from circulant.hw.chips.system import System
from circulant.hw.design import TOP, described
from circulant.hw.emit.amaranth_patches import fast_elaboration
from circulant.hw.emit.inventory import Inventory
from circulant.hw.emit.profile import PROFILES
from circulant.hw.emit.target import VerilogTarget
from circulant.hw.foreseen import logic, quantities
from circulant.hw.resources import counted as counts
from circulant.hw.stream.pipeline import LEVELS
from circulant.hw.top import prefixes
from circulant.sim import artifact, design
from circulant.sim.chips import CHIP, KIND, PARTITION, SYSTEM, VERSION, Partition
from circulant.sim.design import LayerEntry, Manifest, Stream
from circulant.sim.files.writing import replaced_folder
from circulant.sim.refusal import Refusal

__all__ = ["ChipDesign", "ChipRecord", "Designs", "generate_chips"]

MODULE = "circulant_chip"


@dataclass(frozen=True)
class _LinkRecord:
    """The entry of a link in a chip's manifest: ``pins`` that go out, ``words`` of a step, the streams; of a carrier
    its name, and beats of a frame that goes."""

    bits: int
    latency: int
    words: int
    pins: int
    sends: tuple[str, ...]
    takes: tuple[str, ...]
    carrier: str = ""
    frame: int = 0


@dataclass(frozen=True)
class ChipRecord:
    """The manifest of a chip, all but the hashes of its files; `circulant.sim.chips` has the rules of what is read."""

    network: str
    part: str
    chip: str
    number: int
    chips: int
    top: str
    verilog: tuple[str, ...]
    images: tuple[str, ...]
    ports: tuple[tuple[str, str, int], ...]
    links: Mapping[str, _LinkRecord]
    cycles: float
    multipliers: int
    memory_bits: int
    clock: str = "clk"
    reset: str = "rst"


@dataclass(frozen=True, eq=False)
class ChipDesign:
    """The design of a chip.

    Parameters:
        contents: Verilog and memory images by file name.
        record: what the manifest says.
        inventory: what its part is made of, its logic foreseen; ends of links are not counted.
        around: files of what carries its links, which are not simulated, by name.
    """

    name: str
    contents: Mapping[str, str]
    record: ChipRecord
    inventory: Inventory
    around: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Designs:
    """The designs of a network over several chips, and the circuit of all of them.

    Parameters:
        chips: by number, those that have a part.
        system: the files of the whole by name.
        manifest: of the whole, which is that of a design.
        places: a line for each layer.
    """

    planned: Planned
    chips: Mapping[int, ChipDesign]
    system: Mapping[str, str]
    manifest: Manifest
    places: Sequence[str] = ()

    @property
    def partition(self) -> Partition:
        """The contents of ``partition.json``."""
        planned, timing, link = self.planned, self.planned.timing, self.planned.cluster.link
        names = [each.name for each in planned.cluster.chips]
        called: dict[int | tuple[int, int], str] = {**dict(enumerate(names)), **{
            pair: f"{names[pair[0]]} → {names[pair[1]]}" for pair in planned.links}}
        return {
            "network": planned.cut.whole.hash, "carrier": link.carrier.name if link.carrier else "pins",
            "places": [*self.places], "period": timing.period,
            "latency": timing.latency, "estimates": [*timing.estimates],
            "chips": [{"name": names[n], "device": planned.cluster.chips[n].device,
                       "layers": [name for name, place in planned.placement.items() if n in place.chips],
                       "period": timing.parts[n], "multipliers": each.record.multipliers,
                       "memory_bits": each.record.memory_bits} for n, each in self.chips.items()],
            "links": [{"start": names[start], "end": names[end], "bits": link.bits, "latency": link.latency,
                       "words": words, "load": words / timing.period}
                      for (start, end), words in timing.links.items()],
            "rows": {called[name]: [[*span] for span in spans] for name, spans in timing.works.items()}}

    def write(self, folder: str | Path) -> Path:
        """Write a folder for each chip and one of the whole.

        Raises:
            Refusal: when the folder holds something else.
        """
        folder = Path(folder)
        if folder.exists() and (not folder.is_dir() or (
                any(folder.iterdir()) and not (folder / SYSTEM / "manifest.json").exists())):
            raise Refusal(f"The folder of chips must be new, empty or one of chips, but {folder} holds other files; "
                          "choose another one")
        with replaced_folder(folder) as fresh:
            for each in self.chips.values():
                _write(fresh / each.name, {**each.contents, **each.around}, CHIP, VERSION, manifest=asdict(each.record))
            _write(fresh / SYSTEM, self.system, design.KIND, design.VERSION, manifest=self.manifest)
            artifact.write_json(fresh / PARTITION, KIND, VERSION, {**self.partition})
        return folder


def _write(folder: Path, texts: Mapping[str, str], kind: str, version: int, *, manifest: Mapping[str, object]) -> None:
    contents = {name: text.encode() for name, text in texts.items()}
    folder.mkdir()
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    artifact.write_json(folder / "manifest.json", kind, version, {**manifest, "files": design.hashes(contents)})


def generate_chips(planned: Planned, *, family: str = "generic", latency: int | None = None, faults: int = 0,
                   levels: int = LEVELS, places: Sequence[str] = ()) -> Designs:
    """The designs of a plan.

    Parameters:
        levels: of logic, with which it was planned.
        places: a line for each layer, that ``partition.json`` is to have.
        family: see `circulant.hw.design.generate`.
        latency: cycles of the links in the simulated whole; None for what they were planned with.
        faults: where it is not 0, the seed by which words of these links are lost, doubled and spoilt.
    """
    made: dict[int, ChipDesign] = {}
    chips: dict[int, Chip] = {}
    parts = dict[int, Manifest]()
    cut, names = planned.cut, [each.name for each in planned.cluster.chips]
    with fast_elaboration():
        for n, (part, plans) in enumerate(zip(cut.parts, planned.plans, strict=True)):
            if part is None:
                continue
            top, target = planned.top(n), VerilogTarget(PROFILES[family])
            texts = {"top.v": target.convert(top, TOP)}
            counted, waiting = target.inventories.of(TOP), planned.waits(n)
            parts[n] = described(part, plans, top, counted, sorted(target.images))
            chips[n] = Chip(cut, n, top, f"{names[n]}_{TOP}", planned.links,
                            streams=planned.streams)
            outputs = [each["name"] for each in parts[n]["ports"] if each["direction"] == "out"]
            around = VerilogTarget(PROFILES[family],
                                   elsewhere={f"{names[n]}_{TOP}": outputs, "circulant_rom": ("data",)})
            texts["chip.v"] = around.convert(chips[n], MODULE)
            texts = {f"{names[n]}_{name}": _renamed(text, f"{names[n]}_") for name, text in texts.items()}
            images = {f"{names[n]}_{name}": text for name, text in target.images.items()}
            made[n] = ChipDesign(names[n], texts | images, ChipRecord(
                cut.whole.hash, part.hash, names[n], number=n, chips=len(names), top=f"{names[n]}_{MODULE}",
                verilog=tuple(texts), images=tuple(sorted(images)), ports=_signals(chips[n]),
                links={names[other]: _link_record(planned, n, other) for other in chips[n].others},
                cycles=planned.timing.parts[n], multipliers=counted.multipliers,
                memory_bits=parts[n]["memory_bits"] + sum(each.bits for each in waiting.memories)),
                replace(counted, memories=counted.memories + counts(waiting, PROFILES[family]).memories,
                        logic=logic(quantities(top.parts, len(part.stages), levels=levels))))
        modules = {n: f"{names[n]}_{MODULE}" for n in chips}
        system = System(chips, modules, latency=planned.cluster.link.latency if latency is None else latency,
                        faults=faults, turns=cut.turns, samples=not cut.whole.sequence)
        target = VerilogTarget(PROFILES[family], elsewhere={
            modules[n]: [name for name, member in chip.signature.members.items() if member.flow is not In]
            for n, chip in chips.items()})
        text = target.convert(system, TOP)
    contents = {"top.v": text} | target.images | {
        name: each for chip in made.values() for name, each in chip.contents.items()}
    exact = not faults and latency in (None, planned.cluster.link.latency)
    return Designs(planned, made, contents, _whole(planned, parts, made, contents, exact=exact), places)


def _renamed(text: str, prefix: str) -> str:
    """Verilog whose modules and memory images have names that begin with ``prefix``."""
    modules = re.findall(r"^module (\w+)", text, re.MULTILINE)
    names = re.compile(rf"\b({'|'.join(sorted(modules, key=len, reverse=True))})\b") if modules else None
    text = names.sub(rf"{prefix}\1", text) if names else text
    return re.sub(r'"([^"\s]+\.hex)"', rf'"{prefix}\1"', text)


def _signals(chip: Chip) -> tuple[tuple[str, str, int], ...]:
    """Name, direction and bits of clock, reset and the ports of a chip."""
    return ("clk", "in", 1), ("rst", "in", 1), *(
        (name, "in" if member.flow is In else "out", member.shape) for name, member in chip.signature.members.items())


def _link_record(planned: Planned, n: int, other: int) -> _LinkRecord:
    link, cut, shape = planned.cluster.link, planned.cut, planned.links[n, other]
    carrier = shape.carrier
    return _LinkRecord(link.bits, link.latency, words=planned.timing.links[n, other],
                       pins=0 if carrier else shape.pins + 2 if shape.pins else
                       shape.word.size + shape.reverse.answer.size,
                       sends=tuple(wire.name for wire in wires_of(cut, n, other)),
                       takes=tuple(wire.name for wire in wires_of(cut, other, n)),
                       carrier=carrier.name if carrier else "", frame=shape.frame if carrier else 0)


def _width(planned: Planned, name: str, chip: int) -> int:
    """Values of a block of a stream of a chip."""
    own = planned.streams[chip]
    assert own is not None, "a stream is one of a part"
    return (own.entries.get(name) or own.exits[name]).k


def _whole(planned: Planned, parts: Mapping[int, Manifest], made: Mapping[int, ChipDesign],
           contents: Mapping[str, str], *, exact: bool) -> Manifest:
    """The manifest of all chips in one circuit."""
    network, cut, timing = planned.cut.whole, planned.cut, planned.timing
    entering, leaving = prefixes(network)

    def port(mine: list[Stream], name: str, prefix: str, several: bool) -> Stream:
        found = mine[0] if len(mine) == 1 else next(each for each in mine if each["name"] == name)
        own: Stream = {**found, "prefix": prefix, "name": name}
        if not several:
            del own["name"]
        return own

    inputs, outputs = dict[str, Stream](), dict[str, Stream]()
    for each, prefix in zip(network.inputs, entering, strict=True):
        part = parts[max((n for n in parts if each.name in cut.entering(n)), key=partial(_width, planned, each.name))]
        inputs[each.name] = port([part["input"], *part.get("more_inputs", ())], each.name, prefix,
                                 len(network.inputs) > 1)
        if each != network.leading:
            inputs[each.name].setdefault("per", "step" if each.flow.sequence else "sequence")
    for name, prefix in zip(network.outputs, leaving, strict=True):
        part = parts[max((n for other, n in cut.leaving if other == name), key=partial(_width, planned, name))]
        outputs[name] = port([part["output"], *part.get("more_outputs", ())], name, prefix, len(network.outputs) > 1)
    hosts = dict.fromkeys(each for n in parts for each in made[n].record.ports
                          if not each[0].startswith("link") and each[0] not in ("up", "fault"))
    shared = any(isinstance(plan, LayerPlan) and plan.sharing is not None for plans in planned.plans for plan in plans)
    late = timing.latency if exact else None
    stepwise = network.per_step or not network.sequence  # Nothing is under way when a result is out.
    states = {wire.name: timing.exchanges.get(wire.start, 0.0) for wire in cut.wires if wire.before and exact}
    layers: list[LayerEntry] = []
    share = {n: cut.turns.count(n) / len(cut.turns) for n in cut.turns}  # The slowest of them sets the pace.
    for n in [max(share, key=lambda n: timing.parts[n] * share[n])] if share else parts:
        sent = [float(words) for pair, words in timing.links.items() if pair[0] == n and exact]
        layers += [{**entry, "cycles": max(entry["cycles"] * share.get(n, 1), states.get(entry["name"], 0.0), *sent)}
                   for entry in parts[n]["layers"]]
    whole: Manifest = {
        "name": network.name, "network": network.hash, "top": TOP,
        "verilog": [name for name in contents if name.endswith(".v")],
        "images": sorted(name for name in contents if not name.endswith(".v")),
        "clock": "clk", "reset": "rst",
        "ports": [{"name": name, "direction": direction, "bits": bits, "meaning": ""}
                  for name, direction, bits in hosts],
        "input": inputs.pop(network.leading.name), "output": outputs.pop(network.result),
        "streams": len(cut.turns) or 1 if network.sequence else 1,
        "max_steps": None, "multipliers": sum(each.record.multipliers for each in made.values()),
        "multiplications": {name: sum(part["multiplications"][name] for part in parts.values())
                            for name in ("per_step", "per_sequence")},
        "links": {name: planned.cluster.link.latency for name in contents if name.startswith("link_")},
        "memory_bits": sum(each.record.memory_bits for each in made.values()), "latency_spaced": late,
        "latency_contiguous": late if stepwise and not shared and not timing.exchanges and not cut.turns else None,
        "estimates": [*timing.estimates] if exact else ["cycles"], "layers": layers}
    if network.leading.flow.grid is not None:
        whole["over_images"] = True
    if inputs:
        whole["more_inputs"] = list(inputs.values())
    if outputs:
        whole["more_outputs"] = list(outputs.values())
    return whole
