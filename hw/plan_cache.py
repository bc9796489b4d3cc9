"""Plans that are found once for all networks of the same shapes."""
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from circulant.hw.arith.straight_lines import straight
from circulant.hw.array.plans import Plan, rebound, with_ports, with_protection
from circulant.hw.plan.shared.groups import STEPS
from circulant.hw.planner import plan
from circulant.hw.stream.pipeline import LEVELS
from circulant.sim.golden.network import Network
from circulant.sim.golden.residual import Residual
from circulant.sim.kinds.conv import Conv
from circulant.sim.passes.layer import GoldenLayer
from circulant.sim.shape.kinds import within

__all__ = ["plans_of"]

_KNOWN: dict[Any, Sequence[Plan]] = {}
"""Plans by everything that they depend on: they are slow to find, and no latency depends on a width."""


def plans_of(network: Network, multipliers: int, *, streams: int = 1, levels: int = LEVELS,
             objective: str = "throughput", reloadable: bool = False, packing: str = "none",
             protection: str = "none", beat_blocks: int = 1, latency: int = 0, max_steps: int = STEPS) -> list[Plan]:
    """The plans of a network, as `circulant.hw.planner.plan`, found once in a process.

    Parameters:
        packing: in `circulant.hw.array.plans.PORTS`, or "none".
        protection: of memories, one of `circulant.sim.arith.codes.PROTECTIONS`.

    Raises:
        Refusal: as `circulant.hw.planner.plan`.
    """
    arranged = network.arrangement
    key = (tuple(map(_sizes, network.stages)), tuple(map(tuple, arranged.sources)), tuple(arranged.come), multipliers,
           streams, levels, objective, reloadable, beat_blocks, latency, max_steps)
    if key not in _KNOWN:
        _KNOWN[key] = plan(network, multipliers, streams=streams, levels=levels, objective=objective,
                           reloadable=reloadable, beat_blocks=beat_blocks, latency=latency, max_steps=max_steps)
    plans = with_protection(with_ports(rebound(_KNOWN[key], network.stages), packing), protection)
    return [_bound(each, layer) for each, layer in zip(plans, network.stages, strict=True)]


def _bound(plan: Any, layer: GoldenLayer) -> Any:
    """The plan with this layer in place of one that differs in its numbers and widths."""
    if isinstance(layer, Residual):
        return replace(plan, **{name: tuple(_bound(*pair) for pair in zip(getattr(plan, name), chain, strict=True))
                                for name, chain in layer.branches.items()})
    return replace(plan, shape=replace(plan.shape, layer=layer)) if isinstance(layer, Conv) else plan


def _sizes(layer: GoldenLayer) -> Any:
    if parts := within(layer):
        return getattr(layer, "grid", None), len(getattr(layer, "body", ())), tuple(map(_sizes, parts))
    return (layer.kind, layer.inputs, layer.outputs, getattr(layer, "reset", ""), getattr(layer, "mode", ""),
            getattr(layer, "peephole", None) is not None,
            getattr(layer, "grid", None), getattr(layer, "window", None),
            getattr(layer, "order", ""), getattr(layer, "rows", False), _straight(getattr(layer, "table", None)),
            getattr(layer, "returns", ""), tuple((role, product.weights.shape, product.twiddle_bits)
                                                 for role, product in getattr(layer, "products", {}).items()))


def _straight(table: Any) -> bool:
    """Whether an activation has a table that takes no multipliers, so that its plan is another one."""
    return table is not None and straight(table)
