"""Another network for a design that stands: the words of its memories, and where they go."""
from dataclasses import replace
from pathlib import Path
from typing import Any

from amaranth.hdl import Fragment
from amaranth.lib import wiring

from circulant.hw.design import Design
from circulant.hw.emit.target import VerilogTarget
from circulant.hw.plan.plan import Plan, plan
from circulant.hw.top import Top
from circulant.sim.design import hashes, read
from circulant.sim.golden.network import Network
from circulant.sim.golden.structure import check_structure, renamed
from circulant.sim.refusal import Refusal

__all__ = ["writes", "writes_for"]


class _Images(VerilogTarget):
    """Collects the images, and converts nothing."""

    def share(self, module: str, make: Any) -> tuple[wiring.Signature, list[str]]:
        if module not in self._modules:
            component = make()
            Fragment.get(component, self)
            self._modules[module] = (component.signature, [])
        return self._modules[module]


def writes(design: Design, network: Network) -> list[tuple[int, int]]:
    """(address, word) of all writes that turn ``design`` into the hardware of ``network``.

    They are for `Configuration.load`; the states stay as they are.

    Raises:
        Refusal: when the design is not reloadable, or was made from a network of another structure.
    """
    configuration = design.configuration
    check_structure(design.network, network)
    layers = tuple(renamed(layer, like.name) for layer, like in zip(network.layers, design.network.layers, strict=True))
    images = _images(replace(network, layers=layers), design.plans)
    return configuration.writes({file.removesuffix(".hex"): [int(line, 16) for line in text.split()]
                                 for file, text in images.items()})


def writes_for(folder: str | Path, network: Network, other: Network, *, multipliers: int,
               streams: int = 1) -> list[tuple[int, int]]:
    """`writes` that load ``other`` into the design in ``folder``, which was made from ``network``.

    Parameters:
        multipliers, streams: as it was generated with.

    Raises:
        Refusal: as `writes`, and when the design was generated with others, or a file is missing or damaged.
    """
    folder = Path(folder)
    manifest = read(folder)
    design = Design(network, plan(network, multipliers, streams=streams), "", {}, manifest)
    images = {name: text.encode() for name, text in _images(network, design.plans).items()}
    if manifest["network"] != network.hash or hashes(images) != {name: manifest["files"][name]
                                                                 for name in manifest["images"]}:
        raise Refusal(f"{folder} must hold the design of network {network.name!r} with {multipliers} multipliers and "
                      f"{streams} streams, but it is another one; generate it again")
    return writes(design, other)


def _images(network: Network, plans: list[Plan]) -> dict[str, str]:
    """The memory images by file name."""
    target = _Images()
    Fragment.get(Top(network, plans), target)
    return target.images
