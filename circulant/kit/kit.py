"""Files of the integration kit, from templates that see the manifest of a design and the beats of its test bench."""
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2

from circulant.kit.beats import Beats, beats_of
from circulant.kit.registers import BUS_FILES, bus_context
from circulant.sim import design
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.files.writing import atomic_text
from circulant.sim.refusal import Refusal
from circulant.sim.vectors import Vectors

__all__ = ["CLOCK_MHZ", "FILES", "write_kit"]

CLOCK_MHZ = 200.0
"""Clock of the constraints unless another one is asked for."""

FILES = {
    "README.md": "readme.md.j2",
    "tb_circulant_top.sv": "bench.sv.j2",
    "axi_stream_rules.sv": "axi_stream_rules.sv.j2",
    "circulant_top.core": "fusesoc.core.j2",
    "component.xml": "component.xml.j2",
    "circulant_top.xdc": "clock.xdc.j2",
    "circulant_top.sdc": "clock.sdc.j2",
    "circulant_top.lpf": "clock.lpf.j2",
    "circulant_top.v.txt": "instance.v.j2",
    "circulant_top.vhd.txt": "instance.vhd.j2",
    "circulant_packing.h": "packing.h.j2",
}
"""Template of each file of the kit, beside ``tb_input.hex`` and ``tb_expected.hex``."""

WRAPPED = ("bench.sv.j2", "fusesoc.core.j2", "component.xml.j2", "instance.v.j2", "instance.vhd.j2")
"""Templates that are written again for the wrapper of a bus."""

STATUS = ("malformed", "overflow")
"""Ports that say that a host broke the framing of its sequences."""

_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("circulant.kit", "templates"), undefined=jinja2.StrictUndefined, trim_blocks=True,
    lstrip_blocks=True, keep_trailing_newline=True, autoescape=jinja2.select_autoescape(["xml.j2"]))


def write_kit(folder: str | Path, vectors: Vectors | str | Path, *, clock_mhz: float = CLOCK_MHZ) -> list[Path]:
    """Write the integration kit of a generated design beside its ``top.v``.

    That is a README of the ports with a worked example, instances in Verilog and VHDL, a self-checking test bench with
    the first of the vectors, IP-XACT (``component.xml``), a FuseSoC core, constraints of the clock, and a C header that
    packs vectors into beats; of a design behind a bus also its registers as SystemRDL, C header, Python map and page.

    Parameters:
        folder: of the design, with ``manifest.json``.
        vectors: inputs and golden outputs of the network that the design was made from.
        clock_mhz: clock of the constraints.

    Returns:
        The files that were written.

    Raises:
        Refusal: when the clock is no positive number, the design is damaged, or the vectors are of another network.
    """
    if not 0 < clock_mhz < 10_000:
        raise Refusal(f"The clock of the constraints must be above 0 and below 10,000 MHz, not {clock_mhz:g}; give it "
                      "as clock_mhz")
    folder = Path(folder)
    manifest, body = Manifest.load(folder), design.read(folder)
    design.require_single(body, "The integration kit")
    if "ports" not in body:
        raise Refusal(f"{folder / 'manifest.json'} must list the ports of the design, but it is of an earlier version; "
                      "generate the design again")
    beats = beats_of(manifest, vectors if isinstance(vectors, Vectors) else Vectors.load(vectors))
    context = _context(manifest, body, beats, clock_mhz)
    files = FILES
    if "bus" in body:
        context = {**context, **bus_context(body)}
    rendered = [(files, context)]
    if "bus" in body:
        wrapper = {name.replace("component", body["bus"]["top"]).replace(manifest.top, body["bus"]["top"]): template
                   for name, template in FILES.items() if template in WRAPPED}
        wrapper[f"{body['bus']['top']}_bd.tcl"] = "block_design.tcl.j2"
        rendered += [(BUS_FILES, context), (wrapper, {**context, **_wrapper(body["bus"])})]
    texts = {name: _TEMPLATES.get_template(template).render(its)
             for some, its in rendered for name, template in some.items()}
    texts |= {"tb_input.hex": "\n".join(beats.given) + "\n", "tb_expected.hex": "\n".join(beats.expected) + "\n"}
    for name, text in texts.items():
        atomic_text(folder / name, text)
    return [folder / name for name in texts]


def _context(manifest: Manifest, body: Mapping[str, Any], beats: Beats, clock_mhz: float) -> Mapping[str, Any]:
    ports = [*design.ports(body).values()]
    name = re.sub(r"[^ -~]+", " ", body.get("name", "network"))  # It stands in comments of one line.
    return {
        "top": manifest.top, "name": name, "identifier": re.sub(r"\W", "_", name), "network": manifest.network,
        "input": _port(manifest, body, "input"), "output": _port(manifest, body, "output"),
        "ports": ports, "status": [port["name"] for port in ports if port["name"] in STATUS],
        "idle": [port for port in ports if port["name"].startswith("cfg_") and port["direction"] == "in"],
        "unread": [port["name"] for port in ports if port["name"] in ("cfg_rdata", "cfg_rvalid")], "tied": [],
        "sources": ["top.v"], "suffix": "", "axi": [], "signals": [
            ("clk", "clock", "ASSOCIATED_BUSIF", f"{manifest.input.prefix}:{manifest.output.prefix}"),
            ("rst", "reset", "POLARITY", "ACTIVE_HIGH")],
        "images": [path.name for path in manifest.images], "beats": beats, "per_step": manifest.per_step,
        "value": beats.vector[0] / 2 ** body["input"]["format"]["frac"],
        "streams": manifest.streams, "max_steps": manifest.max_steps, "over_images": manifest.over_images,
        "vectors": manifest.vectors, "bus": body.get("bus"),
        "speed": _speed(manifest, body, clock_mhz), "clock_mhz": f"{clock_mhz:g}",
        "period_ns": f"{1000 / clock_mhz:.3f}",
    }


def _wrapper(bus: Mapping[str, Any]) -> Mapping[str, Any]:
    """The names of `_context` that are others for the wrapper of a bus."""
    axi = [port for port in bus["ports"] if port["name"].startswith("s_axi_")
           and port["name"] not in (bus["clock"], bus["reset"])]
    return {"top": bus["top"], "ports": bus["ports"], "status": [], "suffix": "_axi4lite",
            "idle": [port for port in axi if port["direction"] == "in"],
            "unread": [port["name"] for port in axi if port["direction"] == "out"],
            "tied": [(bus["clock"], "clk"), (bus["reset"], "~rst")], "sources": [*bus["verilog"], "top.v"],
            "axi": [port["name"] for port in axi], "signals": [
                ("clk", "clock", "ASSOCIATED_BUSIF", "s_axis:m_axis"), ("rst", "reset", "POLARITY", "ACTIVE_HIGH"),
                (bus["clock"], "clock", "ASSOCIATED_BUSIF", "s_axi"),
                (bus["reset"], "reset", "POLARITY", "ACTIVE_LOW")]}


def _speed(manifest: Manifest, body: Mapping[str, Any], mhz: float) -> list[tuple[str, str, str]]:
    """Period and latencies as the design was planned: name, cycles, microseconds at the clock."""
    cycles = {"period": manifest.cycles, "latency, spaced": manifest.latency_spaced,
              "latency, contiguous": manifest.latency_contiguous}
    keys = "cycles", "latency_spaced", "latency_contiguous"
    doubts = dict.fromkeys(body.get("estimates", ()), " (estimate)")
    return [(name, f"{value:,g}{doubts.get(key, '')}", f"{value / mhz:,.3g}")
            if value is not None else (name, "not planned: `circulant simulate` measures it", "")
            for key, (name, value) in zip(keys, cycles.items(), strict=True)]


def _port(manifest: Manifest, body: Mapping[str, Any], which: str) -> Mapping[str, Any]:
    port = manifest.input if which == "input" else manifest.output
    form = body[which]["format"]
    return {"prefix": port.prefix, "bits": 8 * port.beat_bytes, "lanes": port.elements_per_beat,
            "container": port.container_bits, "width": form["width"], "frac": form["frac"],
            "elements": port.elements, "beats": port.beats, "pixels": port.pixels}
