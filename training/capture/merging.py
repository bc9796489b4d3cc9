"""Steps and samples on one axis, as wrappers of layers over time have them: what works on each vector alike works on
the sequences as well."""
from dataclasses import replace
from typing import Any

from torch import Tensor

from circulant.training.capture.record import Record, Ref, Step, parts, refs
from circulant.training.neutral.forms import STEPWISE

__all__ = ["unmerged"]

VIEWS = ("view", "reshape", "flatten", "unflatten")


def unmerged(record: Record) -> Record:
    """The record without views that merge the first two axes, where other views take all that comes of them apart
    again."""
    steps = list(record.steps)
    for number, step in enumerate(steps):
        if step.kind in VIEWS and isinstance(ref := step.args[0], Ref):
            came, result = parts(steps[ref.step].result)[ref.place], step.result
            if isinstance(result, Tensor) and came.ndim > 2 and result.shape == came.flatten(0, 1).shape:
                _apart(record, steps, number, came.shape[:2])
    return replace(record, steps=steps)


def _apart(record: Record, steps: list[Step], start: int, sizes: Any) -> None:
    """Change the steps from one that merges to those that take its vectors apart, unless something else takes them."""
    within, ends, todo = {start}, set[int](), [start]
    while todo:
        at = todo.pop()
        for number, user in enumerate(steps):
            if at not in [ref.step for ref in user.sources]:
                continue
            kind = type(user.called).__name__ if user.module is not None else user.kind
            if user.sources == list(user.args[:1]) and isinstance(user.result, Tensor):
                if kind in STEPWISE and number not in within:
                    within.add(number)
                    todo.append(number)
                    continue
                if kind in VIEWS and user.result.ndim > 2 and user.result.shape[:2] == sizes:
                    ends.add(number)
                    continue
            return
    if within & {ref.step for ref in refs(record.output)} or not ends:
        return
    for number in within | ends:
        step = steps[number]
        if number == start or number in ends:  # Both sides of it are the same now.
            result = step.result if number in ends else step.result.unflatten(0, sizes)
            steps[number] = replace(step, kind="contiguous", called=Tensor.contiguous, args=step.args[:1], kwargs={},
                                    result=result)
        else:
            steps[number] = replace(step, result=step.result.unflatten(0, sizes))
