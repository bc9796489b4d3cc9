"""Plans that are found once for all networks of the same shapes."""
from dataclasses import replace
from typing import Any

from circulant.sim.golden.conv import Conv
from circulant.sim.golden.network import Layer, Network
from circulant.sim.golden.residual import Residual
from circulant.sim.shape.kinds import within

__all__ = ["plans_of"]

_KNOWN: dict[Any, Any] = {}
"""Plans by everything that they depend on: they are slow to find, and no latency depends on a width."""


def plans_of(network: Network, multipliers: int, streams: int, levels: int, objective: str,
             reloadable: bool = False) -> Any:
    """The plans of a network, as `circulant.hw.plan.plan.plan`."""
    from circulant.hw.plan.plan import plan

    if objective != "throughput":  # Such plans know their layers.
        return plan(network, multipliers, streams=streams, levels=levels, objective=objective, reloadable=reloadable)
    key = tuple(map(_sizes, network.layers)), multipliers, streams, levels
    if key not in _KNOWN:
        _KNOWN[key] = plan(network, multipliers, streams=streams, levels=levels)
    return [_bound(each, layer) for each, layer in zip(_KNOWN[key], network.layers, strict=True)]


def _bound(plan: Any, layer: Layer) -> Any:
    """The plan with this layer in place of one that differs in its numbers and widths."""
    if isinstance(layer, Residual):
        return replace(plan, **{name: tuple(_bound(*pair) for pair in zip(getattr(plan, name), chain, strict=True))
                                for name, chain in layer.branches.items()})
    return replace(plan, shape=replace(plan.shape, layer=layer)) if isinstance(layer, Conv) else plan


def _sizes(layer: Layer) -> Any:
    if parts := within(layer):
        return getattr(layer, "grid", None), len(getattr(layer, "body", ())), tuple(map(_sizes, parts))
    return (layer.kind, layer.inputs, layer.outputs, getattr(layer, "reset", ""),
            getattr(layer, "peephole", None) is not None,
            getattr(layer, "grid", None), getattr(layer, "window", None),
            getattr(layer, "order", ""), getattr(layer, "rows", False), _straight(getattr(layer, "table", None)),
            tuple((role, product.weights.shape) for role, product in getattr(layer, "products", {}).items()))


def _straight(table: Any) -> bool:
    """Whether an activation has a table that takes no multipliers, so that its plan is another one."""
    from circulant.hw.arith.straight_lines import straight

    return table is not None and straight(table)
