"""Plans of the layers of two branches, which work at the same time."""
from circulant.hw.array.plans import ResidualPlan
from circulant.hw.layers.residual import waiting
from circulant.hw.plan.passes import Ladder, ladder, layer_entry, layer_multiplications, side_by_side_ladder
from circulant.hw.stream.pipeline import LEVELS
from circulant.sim.artifact import Json
from circulant.sim.figures import floor
from circulant.sim.golden.residual import Residual
from circulant.sim.golden.stages import flows
from circulant.sim.shape.window import Flow

__all__ = ["ResidualPlan"]


def _counts(layer: Residual) -> list[list[int]]:
    """For each layer of both branches the pixels of an image that come."""
    return [[flow.pixels for flow in flows(Flow(layer.inputs, layer.grid), chain)[:-1]]
            for chain in layer.branches.values()]


@ladder.register
def _(layer: Residual, *, streams: int, count: int, levels: int = LEVELS) -> Ladder:
    inner = [[rung[0] for rung in ladder(each, streams=streams, count=come).rungs]
             for chain, counts in zip(layer.branches.values(), _counts(layer), strict=True)
             for each, come in zip(chain, counts, strict=True)]
    body = len(layer.body)
    return Ladder([(ResidualPlan(rung[:body], rung[body:], streams),) for rung in side_by_side_ladder(inner)])


@layer_multiplications.register
def _(layer: Residual, count: int = 1, plan: ResidualPlan | None = None) -> int:
    return sum(layer_multiplications(each, come)
               for chain, counts in zip(layer.branches.values(), _counts(layer), strict=True)
               for each, come in zip(chain, counts, strict=True))


@layer_entry.register
def _(layer: Residual, plan: ResidualPlan) -> Json:
    body, shortcut = waiting(layer)
    return {"name": layer.name, "kind": layer.kind, "cycles": plan.cycles,
            "floor": floor(layer_multiplications(layer), plan.multipliers), "multipliers": plan.multipliers,
            "waiting": {"body": body, "shortcut": shortcut},
            **{name: [layer_entry(*pair) for pair in zip(chain, getattr(plan, name), strict=True)]
               for name, chain in layer.branches.items()}}
