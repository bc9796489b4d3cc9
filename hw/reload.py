"""Another network for a design that stands: the words of its memories, and where they go."""
from dataclasses import replace
from typing import Any

from amaranth.hdl import Fragment
from amaranth.lib import wiring

from circulant.hw.design import Design
from circulant.hw.target import VerilogTarget
from circulant.hw.top import Top
from circulant.sim.network import Network
from circulant.sim.structure import check_structure, renamed

__all__ = ["writes"]


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
    layers = tuple(renamed(layer, like.name) for layer, like in zip(network.layers, design.network.layers, strict=True))
    target = _Images()
    Fragment.get(Top(replace(network, layers=layers), design.plans), target)
    images = {file.removesuffix(".hex"): [int(line, 16) for line in text.split()]
              for file, text in target.images.items()}
    return configuration.writes(images)
