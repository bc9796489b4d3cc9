"""Late cones, mapped anew: logic that no exchange of cells makes fast enough gets another structure, chosen for speed.

The first mapping is one for area, for all of a design; this one sees nothing but the gates before late ends. ABC proves
that what comes out equals what went in.
"""
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from circulant.boards.asic.buffers import BUFFER, FANOUT
from circulant.boards.asic.cells.library import Library
from circulant.boards.asic.cells.models import models
from circulant.boards.asic.mapping import Settings, avoided, ties, yosys
from circulant.boards.asic.memories import INSTANCE
from circulant.boards.asic.netlist import Instance, Net, Netlist
from circulant.boards.yosys_json import Module
from circulant.sim.refusal import ToolError

__all__ = ["EFFORTS", "cone", "restructured"]

EFFORTS = ("&get,-n;&dch,-f;&nf;&put", "strash;dch,-f;map,-B,0.9")
"""ABC's ways to short paths, the smaller result first: of the late gates of digits-gru in sg13g2 the first made paths
10 % shorter at 7 % more area, the second 20 % at 23 %."""

SHARE = 0.5
"""Part of the period that ABC may fill: less than in the first mapping, which these paths came from."""

PROVEN = "Networks are equivalent"
"""The words of ABC on a mapping that equals what it was made of."""


def restructured(netlist: Netlist, library: Library, ends: Iterable[str], *, effort: int = 0, work: Path,
                 libraries: Sequence[str], settings: Settings) -> int | None:
    """Map the gates before some ends anew; returns how many cells took the place of the others, None where there are
    no gates.

    Parameters:
        ends: instances that late paths lead to; a gate is one of those that are mapped.
        effort: index of `EFFORTS`.
        libraries: liberty files, as seen from ``work``.

    Raises:
        Refusal, ToolError: as `circulant.boards.asic.mapping.yosys`; also when ABC finds a difference.
    """
    gates = cone(netlist, library, ends)
    if not gates:
        return None
    inputs, outputs = _border(netlist, library, gates)
    part = Netlist("late", {"i": ("input", list(inputs)), "o": ("output", list(outputs))},
                   {name: each for name, each in netlist.instances.items() if name in gates}, {})
    part.write(work / "late.v")
    (work / "late_models.v").write_text(models(library, {each.cell for each in part.instances.values()}))
    files = " ".join(f"-liberty {name}" for name in libraries)
    yosys(work, ["read_verilog late.v late_models.v", "hierarchy -check -top late", "flatten", "simplemap", "opt_clean",
                 f"tee -q -o proof.log abc {files} {avoided(library, settings)} -script {_script(effort, settings)}",
                 "opt_clean -purge", ties(library), "opt_clean -purge", "write_json restructured.json"],
          "restructuring of late gates")
    module = json.loads((work / "restructured.json").read_text())["modules"]["late"]
    if module["cells"] and PROVEN not in (work / "proof.log").read_text():
        raise ToolError(f"ABC must map late gates to equal ones, but does not say so; see {work / 'proof.log'}")
    return _replace(netlist, gates, inputs, outputs, module)


def cone(netlist: Netlist, library: Library, ends: Iterable[str]) -> set[str]:
    """The gates before some instances, back to registers, ports and memories.

    No input of the cone depends on a gate of it, so that another structure closes no loop: gates before a memory's
    own stay. So do trees of buffers behind registers.
    """
    driver = {net: name for name, instance in netlist.instances.items()
              for net in _outputs(library, instance)}

    def before(names: Iterable[str]) -> set[str]:
        found: set[str] = set()
        todo = list(names)
        while todo:
            instance = netlist.instances[todo.pop()]
            for net in _inputs(library, instance):
                name = driver.get(net)
                if name is not None and name not in found and _gate(netlist, library, name):
                    found.add(name)
                    todo.append(name)
        return found

    ends = list(ends)
    found = before(ends) | {name for name in ends if _gate(netlist, library, name)}
    stay = {name for name in found if name.startswith(INSTANCE) or (
        name.startswith(BUFFER) and all(each.startswith(BUFFER) for each in before([name])))}
    return found - stay - before(stay)


def _gate(netlist: Netlist, library: Library, name: str) -> bool:
    cell = library.cells.get(netlist.instances[name].cell)
    return cell is not None and not cell.sequential and not cell.gating and bool(cell.inputs)


def _inputs(library: Library, instance: Instance) -> list[Net]:
    cell = library.cells.get(instance.cell)
    return [net for pin, nets in instance.pins.items() for net in nets
            if (cell.pins[pin].direction == "input" if cell else pin != "rd_data")]


def _outputs(library: Library, instance: Instance) -> list[Net]:
    cell = library.cells.get(instance.cell)
    return [net for pin, nets in instance.pins.items() for net in nets
            if (cell.pins[pin].direction == "output" if cell else pin == "rd_data")]


def _border(netlist: Netlist, library: Library, gates: set[str]) -> tuple[list[int], list[int]]:
    """Nets that gates read from elsewhere, and nets that they give to elsewhere."""
    made = {net for name in gates for net in _outputs(library, netlist.instances[name])}
    read = {net for name in gates for net in _inputs(library, netlist.instances[name])}
    outside = {net for direction, nets in netlist.ports.values() if direction == "output" for net in nets}
    for name, instance in netlist.instances.items():
        if name not in gates:
            outside |= made.intersection(_inputs(library, instance))
    return (sorted(net for net in read - made if isinstance(net, int)),
            sorted(net for net in made & outside if isinstance(net, int)))


def _replace(netlist: Netlist, gates: set[str], inputs: Sequence[int], outputs: Sequence[int], module: Module) -> int:
    """Put the cells of a module in the place of gates."""
    fresh = netlist.fresh()
    nets: dict[int | str, Net] = dict(zip(module["ports"]["i"]["bits"], inputs, strict=True))
    renamed: dict[Net, Net] = {}
    for bit, net in zip(module["ports"]["o"]["bits"], outputs, strict=True):
        if bit in nets or isinstance(bit, str):
            renamed[net] = nets.get(bit, bit)
        else:
            nets[bit] = net
    for name in gates:
        del netlist.instances[name]
    number = len(netlist.instances)
    for cell in module["cells"].values():
        while (name := f"u{number}") in netlist.instances:
            number += 1
        pins: dict[str, list[Net]] = {}
        for pin, bits in cell["connections"].items():
            for bit in bits:
                if bit not in nets:
                    nets[bit] = next(fresh) if isinstance(bit, int) else bit
            pins[pin] = [nets[bit] for bit in bits]
        netlist.instances[name] = Instance(cell["type"], pins)
        number += 1
    if renamed:
        for instance in netlist.instances.values():
            for bits in instance.pins.values():
                bits[:] = [renamed.get(net, net) for net in bits]
        for _, bits in netlist.ports.values():
            bits[:] = [renamed.get(net, net) for net in bits]
    return len(module["cells"])


def _script(effort: int, settings: Settings) -> str:
    """Another structure, buffers, the sizes that reach the share of the period with the least area, and the proof."""
    most = settings.period * SHARE
    return (f"+{EFFORTS[effort]};topo;buffer,-c,-N,{FANOUT};topo;upsize,-D,{most:.0f};dnsize,-D,{most:.0f};cec")
