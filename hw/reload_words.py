"""Another network for a design that stands: the words of its memories, and where they go."""
from pathlib import Path

from circulant.hw.array.plans import rebound, with_protection
from circulant.hw.design import Design
from circulant.hw.plan.shared.groups import STEPS
from circulant.hw.planner import plan
from circulant.hw.stream.pipeline import LEVELS
from circulant.hw.top import images
from circulant.sim.design import hashes, read
from circulant.sim.golden.network import Network
from circulant.sim.quantize.structure import check_structure, renamed
from circulant.sim.refusal import Refusal

__all__ = ["writes", "writes_for"]


def writes(design: Design, network: Network) -> list[tuple[int, int]]:
    """(address, word) of all writes that turn ``design`` into the hardware of ``network``.

    They are for `Configuration.load`; the states stay as they are.

    Raises:
        Refusal: when the design is not reloadable, or was made from a network of another structure.
    """
    configuration = design.configuration
    check_structure(design.network, network)
    same = renamed(network, design.network)
    texts = images(same, rebound(design.plans, same.stages))
    return configuration.writes({file.removesuffix(".hex"): [int(line, 16) for line in text.split()]
                                 for file, text in texts.items()})


def writes_for(folder: str | Path, network: Network, other: Network, *, multipliers: int,
               streams: int = 1, levels: int = LEVELS) -> list[tuple[int, int]]:
    """`writes` that load ``other`` into the design in ``folder``, which was made from ``network``.

    Parameters:
        multipliers, streams, levels: as it was generated with.

    Raises:
        Refusal: as `writes`, and when the design was generated with others, or a file is missing or damaged.
    """
    folder = Path(folder)
    manifest = read(folder)
    plans = plan(network, multipliers, streams=streams, levels=levels, objective=manifest["objective"], reloadable=True,
                 latency=manifest.get("latency_asked", 0), beat_blocks=manifest.get("beat_blocks", 1),
                 max_steps=manifest["max_steps"] or STEPS)
    plans = with_protection(plans, manifest.get("protection", "none"))
    design = Design(network, plans, "", {}, manifest)
    texts = {name: text.encode() for name, text in images(network, design.plans).items()}
    if manifest["network"] != network.hash or hashes(texts) != {name: manifest["files"][name]
                                                                 for name in manifest["images"]}:
        raise Refusal(f"{folder} must hold the design of network {network.name!r} with {multipliers} multipliers and "
                      f"{streams} streams, but it is another one; generate it again")
    return writes(design, other)
