"""Another network for a design that stands: the words of its memories, and where they go."""
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from amaranth.hdl import Fragment
from amaranth.lib import wiring

from circulant.hw.design import Design
from circulant.hw.target import VerilogTarget
from circulant.hw.top import Top
from circulant.sim.layers import Layer, layer_arrays, layer_as_json
from circulant.sim.network import Network
from circulant.sim.refusal import Refusal

__all__ = ["check_structure", "writes"]


class _Images(VerilogTarget):
    """Collects the images, and converts nothing."""

    def share(self, module: str, make: Any) -> tuple[wiring.Signature, list[str]]:
        if module not in self._modules:
            component = make()
            Fragment.get(component, self)
            self._modules[module] = (component.signature, [], "")
        return self._modules[module][0], []


def writes(design: Design, network: Network) -> list[tuple[int, int]]:
    """(address, word) of all writes that turn ``design`` into the hardware of ``network``.

    They are for `Configuration.load`; the states stay as they are.

    Raises:
        Refusal: when the design is not reloadable, or was made from a network of another structure.
    """
    configuration = design.configuration
    check_structure(design.network, network)
    names = [layer.name for layer in design.network.layers]
    layers = tuple(replace(layer, name=name) for layer, name in zip(network.layers, names, strict=True))
    target = _Images()
    Fragment.get(Top(replace(network, layers=layers), design.plans), target)
    images = {file.removesuffix(".hex"): [int(line, 16) for line in text.split()]
              for file, text in target.images.items()}
    return configuration.writes(images)


def check_structure(rule: Network, given: Network) -> None:
    """
    Raises:
        Refusal: when the circuit of one network cannot be that of the other, with the first thing in which they differ.
    """
    if (rule.sequence, rule.inputs, len(rule.layers)) != (given.sequence, given.inputs, len(given.layers)):
        what = [f"{len(n.layers)} layers for {'sequences' if n.sequence else 'vectors'} of {n.inputs}"
                for n in (rule, given)]
        raise Refusal(f"A network can be loaded if it has the structure of the design's, {what[0]}, but {given.name!r} "
                      f"has {what[1]}; generate a design for it")
    for theirs, mine in zip(rule.layers, given.layers, strict=True):
        for (field, due), (_, found) in zip(_structure(theirs), _structure(mine), strict=False):
            if due != found:
                raise Refusal(f"Layer {mine.name!r} of network {given.name!r} must have {field} {due} as the design "
                              f"has, not {found}; quantize it with quantize_like, or generate a design for it")


def _structure(layer: Layer) -> Iterator[tuple[str, Any]]:
    """Field by field what the circuit follows from: kind, sizes, formats; those without a place are last."""
    yield "the kind", layer.kind
    entry = layer_as_json(layer)
    yield "the parts", sorted(entry)
    yield from _fields("", entry)
    arrays = layer_arrays(layer)
    yield "the arrays", sorted(name.removeprefix(f"{layer.name}.") for name in arrays)
    for name, array in arrays.items():
        yield f"{name.removeprefix(f'{layer.name}.')} of the shape", array.shape


def _fields(path: str, entry: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in entry.items():
        if isinstance(value, dict):
            yield from _fields(f"{path}{name}.", value)
        elif name != "name":
            yield f"{path}{name}", value

