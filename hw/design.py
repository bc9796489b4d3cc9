"""From a network to a folder of Verilog: ``top.v``, memory images, ``manifest.json``."""
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from circulant.hw.array.plans import (
    PORTS,
    LayerPlan,
    require_packing,
    require_pairs,
    sharings,
    simple,
    streams_of,
    with_ports,
    with_protection,
)
from circulant.hw.bus.bus_top import FILE, bus_verilog
from circulant.hw.emit.amaranth_patches import fast_elaboration
from circulant.hw.emit.inventory import Inventory
from circulant.hw.emit.profile import PROFILES
from circulant.hw.emit.target import VerilogTarget
from circulant.hw.foreseen import logic, quantities
from circulant.hw.plan.ladders import layer_entry
from circulant.hw.plan.shared.cost import sample_rows
from circulant.hw.planner import Alternative, Plan, alternatives, each_step, plan, repeats, require_positive
from circulant.hw.ports import port_list
from circulant.hw.resources import figures, figures_of, parts, stepwise
from circulant.hw.stream.pipeline import LEVELS, MOST_LEVELS
from circulant.hw.top import Top, container_bits, prefixes
from circulant.hw.unit import loadable
from circulant.sim import artifact, design
from circulant.sim.arith.codes import check_protection
from circulant.sim.arith.fixed import Format
from circulant.sim.arith.multiplier import EXACT
from circulant.sim.configuration import WORD, Configuration
from circulant.sim.design import LayerEntry, Manifest, Stream
from circulant.sim.figures import Figures
from circulant.sim.files.writing import replaced_folder
from circulant.sim.golden.network import Network
from circulant.sim.golden.stages import Stage
from circulant.sim.public import public
from circulant.sim.quantize.bitwidth_cost import DSPS
from circulant.sim.refusal import Refusal, nearest
from circulant.sim.registers import BUSES

__all__ = ["TOP", "Design", "described", "generate", "layer_entry"]

TOP = "circulant_top"


@dataclass(frozen=True, eq=False, repr=False)
class Design:
    """The Verilog of a network.

    Parameters:
        verilog: text of ``top.v``.
        images: memory images by file name.
        manifest: what ``manifest.json`` holds, all but the hashes of the files.
        bus: the Verilog of the wrapper for a bus by file name.
        counted: parts and bits of logic in the RTLIL that the Verilog is written from. Those of logic in the manifest
            are foreseen, as `circulant estimate` foresees them.
    """

    network: Network
    plans: list[Plan]
    verilog: str
    images: dict[str, str]
    manifest: Manifest
    bus: dict[str, str] = field(default_factory=dict)
    counted: Inventory = field(default_factory=Inventory)

    KIND = design.KIND
    VERSION = design.VERSION

    def __repr__(self) -> str:
        return (f"<Design of {self.network.name!r}: {self.multipliers:,} multipliers, {self.memory_bits:,} memory "
                f"bits, {len(self.images)} images>")

    @property
    def figures(self) -> Figures:
        """The figures; multipliers and bits of memories are counted in the RTLIL that the Verilog is written from."""
        return Figures.of(self.manifest)

    @property
    def multipliers(self) -> int:
        """Multiplications in the circuit, counted."""
        return self.figures.multipliers

    @property
    def memory_bits(self) -> int:
        """Bits of all memories, counted."""
        return self.figures.memory_bits

    @property
    def configuration(self) -> Configuration:
        """Address map and protocol of the configuration port.

        Raises:
            Refusal: when the design has none.
        """
        if "configuration" not in self.manifest:
            raise Refusal("A design must be reloadable to have a configuration port, but that of "
                          f"{self.network.name!r} has fixed images; generate it with hardware.reloadable "
                          "(reloadable=True)")
        return Configuration.from_json(self.manifest["configuration"])

    @public
    def write(self, folder: str | Path) -> Path:
        """Write the design as ``folder``, which holds a whole design or is left as it was.

        Raises:
            Refusal: when the folder exists and holds something that is no design.
        """
        folder = Path(folder)
        taken = folder.exists() and not (folder.is_dir() and (
            not any(folder.iterdir()) or (folder / "manifest.json").exists()))
        if taken:
            raise Refusal(f"The folder of a design must be new, empty or a design's, but {folder} holds other files; "
                          "choose another one")
        with replaced_folder(folder) as fresh:
            contents = {name: text.encode() for name, text in {
                "top.v": self.verilog, **self.images, **self.bus}.items()}
            for name, data in contents.items():
                (fresh / name).write_bytes(data)
            artifact.write_json(fresh / "manifest.json", self.KIND, self.VERSION,
                                self.manifest | {"files": design.hashes(contents)})
        return folder


@public
def generate(network: Network, *, multipliers: int = 64, streams: int = 1, max_steps: int = 128,
             reloadable: bool = False, argmax: bool = False, levels: int = LEVELS,
             objective: str = "auto", family: str = "generic", bus: str = "none",
             clock_gating: bool = False, dsp_packing: str = "none", protection: str = "none",
             beat_blocks: int = 1, latency: int = 0) -> Design:
    """The hardware of ``network`` with at most ``multipliers`` multiplications per cycle.

    Parameters:
        streams: independent sequences that are interleaved, a step of each in turn; see `plan`.
        max_steps: vectors of a sequence at the most, where a layer is bidirectional: memories hold two whole ones. A
            longer one is cut, see `Top`.
        reloadable: with a configuration port, through which weights and states can be exchanged; see docs/reload.md.
        argmax: with the choice of the largest output at the end: that of `Network.with_argmax`.
        family: of FPGAs, whose memories and tools the Verilog suits; see `circulant.hw.emit.profile`. Results and
            cycles are the same in all.
        levels: of logic between two registers of recurrent and fully connected layers, from 4 to 12; more of them make
            a step shorter and the clock slower, see docs/synthesis.md.
        objective: "auto": of an array for each layer and one for all that with the smaller product of period and
            latency; "throughput": an array for each layer, so that all work at once; "latency" of a sample,
            which has one array for all layers to itself; "area": that one with the best period, for small budgets.
        bus: "axi4-lite": with a wrapper around the top, through which a host reads identification, status and counters,
            resets it, and reaches the configuration port; see docs/integration.md.
        clock_gating: registers of pipelines have enables, known from the schedule, and hold what nobody waits for, for
            ASICs whose clock gates then stop their clock; results and cycles are the same. See docs/asic.md.
        dsp_packing: "27x18" or "25x18": two products of narrow weights with one value of the data are made in a DSP
            block with such ports, where their widths allow it; results and cycles are the same. See docs/synthesis.md.
        protection: "parity", "secded" or "scrub": memories of weights, biases and programs have check bits, and ports
            say that a wrong word was read; cycles are the same. See docs/faults.md.
        beat_blocks: blocks that streams and ports carry in a cycle at the most, 1, 2, 4, 8 or 16, where layers have an
            array each, and of a cell alone; 0 for the best of them. More of them take more transforms, and shorten the
            period and the latency of wide fully connected layers and of cells.
        latency: of a sample into an idle circuit at the most, in cycles; 0 for any. Of the designs within it, the
            objective chooses.

    Raises:
        Refusal: when a number is not positive, the budget is too small, no plan that is found has the latency, or the
            network holds what the generator does not support.
    """
    network = network.with_argmax() if argmax else network
    if family not in PROFILES:
        raise Refusal(f"A family must be one of {', '.join(PROFILES)}, not {family!r}{nearest(family, PROFILES)}")
    if bus not in BUSES:
        raise Refusal(f"A bus must be one of {', '.join(BUSES)}, not {bus!r}{nearest(bus, BUSES)}")
    require_packing(dsp_packing, family)
    if dsp_packing != "none" and network.multiplier != EXACT:
        raise Refusal(f"hardware.dsp_packing = {dsp_packing!r} needs exact products, but those of network "
                      f"{network.name!r} are {network.multiplier!r}, which take no DSP blocks; set it to 'none'")
    if isinstance(levels, bool) or not isinstance(levels, int) or not LEVELS <= levels <= MOST_LEVELS:
        raise Refusal(f"levels must be an integer from {LEVELS} to {MOST_LEVELS}, not {levels!r}; give the levels of "
                      "logic between two registers (hardware.levels)")
    require_positive("max_steps", max_steps, "give the length of the longest sequence")
    if reloadable and streams > WORD:
        raise Refusal(f"A reloadable design must have at most {WORD} streams, one for each bit of a word, not "
                      f"{streams}; interleave fewer")
    if reloadable and network.many:
        raise Refusal(f"A reloadable design must have one input and one output, but network {network.name!r} has "
                      f"{len(network.inputs)} and {len(network.outputs)}; set hardware.reloadable to false")
    if bus != "none" and network.many:
        raise Refusal(f"A wrapper for a bus must be around a design with one input and one output, but network "
                      f"{network.name!r} has {len(network.inputs)} and {len(network.outputs)}; set hardware.bus to "
                      "'none'")
    check_protection(protection)
    prefixes(network)
    fixed = [layer for layer in network.stages if not loadable(layer)]
    if reloadable and fixed:
        raise Refusal(f"A reloadable design must have only recurrent and fully connected layers, but layer "
                      f"{fixed[0].name!r} is a {fixed[0].kind}; set hardware.reloadable to false")
    with fast_elaboration():
        if objective == "throughput":
            plans, others = plan(network, multipliers, streams=streams, levels=levels, reloadable=reloadable,
                                 beat_blocks=beat_blocks, latency=latency), []
        else:
            found = alternatives(network, multipliers, streams=streams, levels=levels, objective=objective,
                                 reloadable=reloadable, beat_blocks=beat_blocks, latency=latency,
                                 max_steps=max_steps)
            plans, others = found[0].plans, [
                _alternative(network, replace(each, plans=with_protection(each.plans, protection)),
                             max_steps=max_steps, reloadable=reloadable) for each in found]
        plans = with_ports(plans, dsp_packing)
        if dsp_packing != "none":
            require_pairs(parts(network, plans, max_steps=max_steps, reloadable=reloadable), dsp_packing, network.name)
        plans = with_protection(plans, protection)
        top = Top(network, plans, max_steps=max_steps, reloadable=reloadable)
        if protection != "none" and "corrected" not in top.signature.members:
            raise Refusal(f"hardware.protection = {protection!r} needs a recurrent, fully connected or convolutional "
                          f"layer, but network {network.name!r} has none; set it to 'none'")
        target = VerilogTarget(PROFILES[family], clock_gating=clock_gating)
        verilog = target.convert(top, TOP)
        counted = target.inventories.of(TOP)
        manifest = described(network, plans, top, counted, sorted(target.images))
        foretold = replace(counted, logic=logic(quantities(
            top.parts, len(network.stages), levels=levels)))
        manifest |= {"resources": foretold.as_json(), "family": family, "objective": objective, "alternatives": others}
        manifest |= {"clock_gating": True} if clock_gating else {}
        manifest |= {"protection": protection} if protection != "none" else {}
        manifest |= {"beat_blocks": beat_blocks} if beat_blocks != 1 else {}
        manifest |= {"latency_asked": latency} if latency else {}
        manifest |= _dsp_blocks(counted, dsp_packing) if dsp_packing != "none" else {}
        if bus == "none":
            return Design(network, plans, verilog, target.images, manifest, counted=counted)
        wrapper, entry = bus_verilog(manifest, family)
    return Design(network, plans, verilog, target.images, manifest | {"bus": entry},
                  bus={FILE: wrapper}, counted=counted)


def _dsp_blocks(counted: Inventory, packing: str) -> Manifest:
    """The DSP blocks of its ports that a design takes, counted."""
    block = DSPS[PORTS[packing]]
    alone = sum(count * block.blocks(a, b) for (a, b), count in counted.products.items())
    return {"dsp_packing": packing, "dsp_blocks": alone + counted.pairs.total()}


def _alternative(network: Network, each: Alternative, *, max_steps: int, reloadable: bool) -> Mapping[str, Any]:
    """The cost of an alternative, by the exact model, except that cycles on a shared array which are none are marked as
    an ``estimate``; its memories are counted as its units state them."""
    planned = figures(network, each.plans, max_steps=max_steps, reloadable=reloadable).as_json()
    del planned["multiplications"]  # Those of all alternatives.
    return {"engines": each.engines, "cycles": each.period, **planned, "reason": each.reason,
            **({"estimate": True} if any(part.estimated for plan in each.plans for part in simple(plan)) else {})}


def _repeats(network: Network, plans: list[Plan]) -> Manifest:
    """For a network whose layers share arrays, the steps of a sequence after which they do again what they did before,
    and how many steps they then repeat; empty where no layer has steps, and where that is not known exactly, as a layer
    behind them may hold them up, unless it was played with them."""
    working = [plan for plan, steps in zip(plans, each_step(network), strict=True) if steps]
    played = any(each.apart for each in sharings(plans))
    shared = [plan for plan in (plans if played else working)
              if any(part.sharing is not None for part in simple(plan))]
    known = {part.repeats for plan in shared for part in simple(plan)}
    if None in known or len(known) != 1 or not any(stepwise(network)) or (not played and any(
            plan not in shared and plan.cycles > 1 for plan in working)):
        return {}
    after, steps = known.pop() or (0, 0)
    return {"repeats": {"after": after, "steps": steps}}


def described(network: Network, plans: list[Plan], top: Top, counted: Inventory, images: list[str]) -> Manifest:
    """The manifest of a circuit, all but what it was asked to be and the hashes of its files.

    Parameters:
        counted: its parts, counted.
        images: names of the files of its memory images.
    """
    def port(prefix: str, form: Format, block: int, elements: int) -> Stream:
        return {"prefix": prefix, "elements_per_beat": block, "container_bits": container_bits(form.width),
                "format": form.as_json(), "elements": elements, "beats": -(-elements // block)}

    def named(name: str, several: bool) -> Stream:
        return {"name": name} if several else {}

    entries = {each.given.name: port(each.prefix, each.form, each.block, each.size)
               | ({"pixels": each.pixels} if each.given.flow.grid is not None else {})
               | named(each.given.name, len(network.inputs) > 1) for each in top.entries}
    exits = {each.name: port(each.prefix, each.form, each.block, network.flows[each.name].size)
             | {"per": "step" if network.gives_steps(each.name) else "sequence"}
             | ({"vectors": network.vectors_of(each.name)} if network.vectors_of(each.name) > 1 else {})
             | named(each.name, len(network.outputs) > 1) for each in top.exits}
    for each in network.inputs:
        if each != network.leading:
            pixels = entries[each.name].get("pixels", 1)
            entries[each.name]["per"] = "step" if each.flow.sequence else "sequence"
            if each.flow.grid is not None:
                entries[each.name]["vectors"] = each.flow.pixels // pixels
    more = {} if top.config is None else {"configuration": top.config.map.as_json()}
    over_images = network.leading.flow.grid is not None
    further = {what: [entry for name, entry in ports.items() if name != first] for what, ports, first in (
        ("more_inputs", entries, network.leading.name), ("more_outputs", exits, network.result)) if len(ports) > 1}
    times = repeats(network)
    in_logic = sum(each.copies for each in top.parts.approximate)
    made = replace(figures_of(network, plans, top), multipliers=counted.multipliers + in_logic,
                   memory_bits=counted.memory_bits)
    return cast(Manifest, {
        "name": network.name, "network": network.hash, "top": TOP, "verilog": ["top.v"], "images": images,
        "clock": "clk", "reset": "rst", "ports": port_list(top.signature),
        "input": entries[network.leading.name], "output": exits[network.result],
        **made.as_json(), "streams": streams_of(plans), "max_steps": top.max_steps,
        **({"over_images": True} if over_images else {}),
        **({"late": True} if network.sequence and any(network.arrangement.late) and top.max_steps is None else {}),
        "layers": [_times(layer_entry(layer, plan), time) | _shared_chart(network, plans, layer)
                   | {"per": "step" if steps else "sequence"}
                   | ({"waiting": unit.depths} if layer.kind != "residual" and hasattr(unit, "depths") else {})
                   for layer, plan, steps, time, unit
                   in zip(network.stages, plans, stepwise(network), times, top.units, strict=True)],
    } | _repeats(network, plans) | more | further)


def _shared_chart(network: Network, plans: Sequence[Plan], layer: Stage) -> LayerEntry:
    """The chart of a sample on an array that several layers share, in the entry of the first of them; not where streams
    or directions take turns, of which no sample is alone, nor in a part of several chips, whose layers are no chain."""
    own = next((plan.sharing for each, plan in zip(network.stages, plans, strict=True) if each is layer
                and isinstance(plan, LayerPlan)), None)
    if own is None or own.layers[0] is not layer or own.pairs or own.streams > 1 or not network.arrangement.chain:
        return {}
    elements = [plan.elements for each, plan in zip(network.stages, plans, strict=True)
                if isinstance(plan, LayerPlan) and any(each is one for one in own.layers)]
    return {"chart": {"rows": sample_rows(own, elements)}}


def _times(entry: LayerEntry, times: int) -> LayerEntry:
    return entry | LayerEntry(cycles=entry["cycles"] * times, floor=entry["floor"] * times)
