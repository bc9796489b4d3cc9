"""From a network to a folder of Verilog: ``top.v``, memory images, ``manifest.json``."""
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from circulant.hw.array.layer_programs import layer_program, matrices
from circulant.hw.emit.amaranth_patches import fast_elaboration
from circulant.hw.emit.resource_count import ResourceCount, count_resources
from circulant.hw.emit.target import VerilogTarget
from circulant.hw.layers.residual import waiting
from circulant.hw.layers.tile import TileShape
from circulant.hw.plan.conv_plan import ConvPlan, ResidualPlan, ScalePlan, StreamPlan
from circulant.hw.plan.cost import chart, limit, vector_limit
from circulant.hw.plan.layer_plan import LayerPlan, PairPlan
from circulant.hw.plan.plan import Plan, each_step, layer_multiplications, pixel_counts, plan, repeats, require_positive
from circulant.hw.top import Top, container_bits
from circulant.sim import artifact, design
from circulant.sim.configuration import WORD, Configuration
from circulant.sim.golden.argmax import Argmax
from circulant.sim.golden.bidirectional import Bidirectional
from circulant.sim.golden.gru import Gru
from circulant.sim.golden.linear import Linear
from circulant.sim.golden.lstm import Lstm
from circulant.sim.golden.network import Layer, Network
from circulant.sim.golden.residual import Residual
from circulant.sim.golden.scale import Scale
from circulant.sim.public import public
from circulant.sim.refusal import Refusal

__all__ = ["Design", "generate", "layer_entry"]

TOP = "circulant_top"


@dataclass(frozen=True, eq=False, repr=False)
class Design:
    """The Verilog of a network.

    Parameters:
        verilog: text of ``top.v``.
        images: memory images by file name.
        manifest: what ``manifest.json`` holds, all but the hashes of the files.
    """

    network: Network
    plans: list[Plan]
    verilog: str
    images: dict[str, str]
    manifest: dict[str, Any]

    KIND = design.KIND
    VERSION = design.VERSION

    def __repr__(self) -> str:
        return (f"<Design of {self.network.name!r}: {self.multipliers:,} multipliers, {self.memory_bits:,} memory "
                f"bits, {len(self.images)} images>")

    @property
    def multipliers(self) -> int:
        """Multiplications in the circuit, counted in the Verilog."""
        return int(self.manifest["multipliers"])

    @property
    def memory_bits(self) -> int:
        """Bits of all memories, counted in the Verilog."""
        return int(self.manifest["memory_bits"])

    @property
    def configuration(self) -> Configuration:
        """Address map and protocol of the configuration port.

        Raises:
            Refusal: when the design has none.
        """
        if "configuration" not in self.manifest:
            raise Refusal(f"A design must be reloadable for that, but that of {self.network.name!r} has fixed images; "
                          "generate it with reloadable=True (hardware.reloadable)")
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
        with artifact.replaced_folder(folder) as fresh:
            contents = {name: text.encode() for name, text in {"top.v": self.verilog, **self.images}.items()}
            for name, data in contents.items():
                (fresh / name).write_bytes(data)
            artifact.write_json(fresh / "manifest.json", self.KIND, self.VERSION,
                                self.manifest | {"files": design.hashes(contents)})
        return folder


@public
def generate(network: Network, *, multipliers: int = 64, streams: int = 1, max_steps: int = 128,
             reloadable: bool = False, argmax: bool = False) -> Design:
    """The hardware of ``network`` with at most ``multipliers`` multiplications per cycle.

    Parameters:
        streams: independent sequences that are interleaved, a step of each in turn; see `plan`.
        max_steps: vectors of a sequence at the most, where a layer is bidirectional: memories hold two whole ones. A
            longer one is cut, see `Top`.
        reloadable: with a configuration port, through which weights and states can be exchanged; see docs/reload.md.
        argmax: with the choice of the largest output at the end: that of `Network.with_argmax`.

    Raises:
        Refusal: when a number is not positive, the budget is too small, or the network holds what the generator does
            not support.
    """
    network = network.with_argmax() if argmax else network
    require_positive("max_steps", max_steps, "give the length of the longest sequence")
    if reloadable and streams > WORD:
        raise Refusal(f"A reloadable design must have {WORD} streams at the most, a bit of a word for each, not "
                      f"{streams}; interleave fewer")
    fixed = [layer for layer in network.layers if not isinstance(layer, Argmax | Bidirectional | Gru | Linear | Lstm)]
    if reloadable and fixed:
        raise Refusal(f"A reloadable design must have recurrent and fully connected layers alone, but layer "
                      f"{fixed[0].name!r} is a {fixed[0].kind}; set hardware.reloadable to false")
    with fast_elaboration():
        plans = plan(network, multipliers, streams=streams)
        top = Top(network, plans, max_steps=max_steps, reloadable=reloadable)
        target = VerilogTarget()
        verilog = target.convert(top, TOP, short=network.flow.grid is not None)
        counted = count_resources(verilog, TOP)
        manifest = _manifest(network, plans, top, counted, sorted(target.images))
        manifest["resources"] = target.inventories.of(TOP).as_json()
    return Design(network, plans, verilog, target.images, manifest)


def _manifest(network: Network, plans: list[Plan], top: Top, counted: ResourceCount,
              images: list[str]) -> dict[str, Any]:
    def port(prefix: str, form: Any, block: int, elements: int) -> dict[str, Any]:
        return {"prefix": prefix, "elements_per_beat": block, "container_bits": container_bits(form.width),
                "format": form.as_json(), "elements": elements, "beats": -(-elements // block)}

    more = {} if top.config is None else {"configuration": top.config.map.as_json()}
    over_images = network.flow.grid is not None
    times = repeats(network)
    counts = pixel_counts(network.layers, network.flow.grid)
    # An image is one sample, whatever steps its rows become.
    work = [(steps and not over_images, _multiplications(layer, plan, count) * time) for steps, layer, plan, count, time
            in zip(each_step(network), network.layers, plans, counts, times, strict=True)]
    return {
        "name": network.name, "network": network.hash, "top": TOP, "verilog": ["top.v"], "images": images,
        "clock": "clk", "reset": "rst",
        "input": port("s_axis", network.input_format, top.input_block, network.inputs * top.pixels)
        | ({"pixels": top.pixels} if over_images else {}),
        "output": port("m_axis", network.output_format, top.output_block, network.outputs)
        | {"per": "step" if network.per_step else "sequence"},
        "multipliers": counted.multipliers, "memory_bits": counted.memory_bits,
        "multiplications": {"per_step": sum(each for steps, each in work if steps),
                            "per_sequence": sum(each for steps, each in work if not steps)},
        "streams": plans[0].streams, "max_steps": top.max_steps,
        **({"over_images": True} if over_images else {}),
        "layers": [_times(layer_entry(layer, plan), time) | {"per": "step" if steps else "sequence"}
                   for layer, plan, (steps, _), time in zip(network.layers, plans, work, times, strict=True)],
    } | more


def _multiplications(layer: Layer, plan: Plan, count: int) -> int:
    """That the design makes for a vector, a step or an image of ``count`` pixels."""
    if isinstance(plan, ConvPlan):
        return plan.multiplications
    return layer_multiplications(layer) * (count if isinstance(layer, Scale) else 1)


def _times(entry: dict[str, Any], times: int) -> dict[str, Any]:
    return entry | {name: entry[name] * times for name in ("cycles", "floor")}


def layer_entry(layer: Layer, plan: Plan) -> dict[str, Any]:
    """What a layer got, what a step of it takes, why, and when each unit works; of two directions each."""
    if isinstance(layer, Bidirectional):
        assert isinstance(plan, PairPlan)
        return {"name": layer.name, "kind": layer.kind, "cycles": plan.cycles,
                "floor": -(-layer_multiplications(layer) // plan.multipliers),
                **{name: layer_entry(each, getattr(plan, name)) for name, each in layer.directions.items()}}
    floor = -(-layer_multiplications(layer) // max(1, plan.multipliers))
    if isinstance(layer, Residual):
        assert isinstance(plan, ResidualPlan)
        body, shortcut = waiting(layer)
        return {"name": layer.name, "kind": layer.kind, "cycles": plan.cycles, "floor": floor,
                "multipliers": plan.multipliers, "waiting": {"body": body, "shortcut": shortcut},
                **{name: [layer_entry(*pair) for pair in zip(chain, getattr(plan, name), strict=True)]
                   for name, chain in layer.branches.items()}}
    if isinstance(plan, ScalePlan):
        return {"name": layer.name, "kind": layer.kind, "elements": plan.elements, "cycles": plan.cycles,
                "floor": plan.cycles, "multipliers": plan.multipliers, "limit": "some channels in each cycle"}
    if isinstance(plan, ConvPlan):
        lines, floor = plan.shape, -(-plan.multiplications // plan.multipliers)
        return {"name": layer.name, "kind": layer.kind, "rows": lines.rows,
                "columns": lines.columns if isinstance(lines, TileShape) else lines.array.columns,
                "positions": lines.positions,
                "blocks": lines.blocks, "chains": lines.chains, "fold": lines.fold, "lines": lines.lines,
                "pixels": plan.pixels,
                "cycles": plan.cycles, "floor": floor, "multipliers": plan.multipliers,
                "limit": "multipliers: the array works in every cycle" if plan.cycles <= floor else
                "multipliers: the last turn, pass or fold is not full, or a pixel comes in each cycle"}
    if isinstance(plan, StreamPlan):
        return {"name": layer.name, "kind": layer.kind, "cycles": plan.cycles, "floor": floor, "multipliers": 0,
                "limit": "a value or a block in each cycle"}
    assert isinstance(plan, LayerPlan) and isinstance(layer, Linear | Gru | Lstm)
    shape = plan.shape
    entry = {"name": layer.name, "kind": layer.kind, "rows": shape.rows, "columns": shape.columns,
             "chains": shape.chains, "fold": shape.fold, "elements": plan.elements, "cycles": plan.cycles,
             "floor": -(-layer_multiplications(layer) // plan.multipliers)}
    if not isinstance(layer, Gru | Lstm):
        return entry | {"limit": vector_limit(matrices(layer), shape, plan.cycles, floor)}
    program = layer_program(layer, shape, plan.spacing)
    return entry | {"limit": limit(layer, program, plan.elements, plan.cycles, floor),
                    "chart": chart(layer, program, plan.elements, plan.streams)}
