"""The Gantt chart of a step on an array of its own."""
from circulant.hw.plan.shared.layer_counters import Events
from circulant.sim.artifact import Json

__all__ = ["chart"]


def chart(period: float, step: Events, phases: int) -> Json:
    """A step in steady state: its ``period``, and by unit the [first, last + 1] cycles at work.

    Parameters:
        phases: cycles in which the pointwise unit takes a block.
    """
    spans = {"array: input": (step.issues[0], 1), "array: recurrent": (step.issues[1], 1),
             "array: second": (step.issues[2], 1), "pointwise": (step.blocks, phases),
             "second vector": (step.seconds, 1), "output": (step.results, 1)}
    return {"period": period, "rows": {name: _merged([(at, at + length) for at in cycles])
                                       for name, (cycles, length) in spans.items() if cycles}}


def _merged(spans: list[tuple[int, int]]) -> list[list[int]]:
    merged: list[list[int]] = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(stop, merged[-1][1])
        else:
            merged.append([start, stop])
    return merged
