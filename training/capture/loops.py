"""Loops over time: a cell that is called once a step becomes a recurrent layer, and what is done with each step is done
with all of them."""
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from circulant.training.capture.record import Record, Ref, Step, mapped, parts, refs
from circulant.training.kinds.cell import CELLS
from circulant.training.neutral.forms import STEPWISE

__all__ = ["unlooped"]


def unlooped(record: Record) -> Record:
    """The record with layers in place of cells, each with the same outputs; a cell that does not go from the first
    step on through all of them, each with the state of the step before, stays."""
    work = _Work(record)
    for chain in work.chains():
        work.join(chain)
    while work.merge():
        pass
    return work.record()


class _Work:
    """Steps by numbers, which references have; new ones come at the end until `record` puts all in order."""

    def __init__(self, record: Record) -> None:
        self._before, self._steps = record, dict(enumerate(record.steps))
        self._renamed = dict[Ref, Ref]()

    def chains(self) -> Iterator[list[int]]:
        """The calls of each cell from one without a state on, each with the state that the one before gave."""
        found: list[list[int]] = []
        others = set[int]()  # Cells that are called in another way, too.
        for number, step in self._steps.items():
            if type(step.called) not in CELLS or not step.args or not isinstance(step.args[0], Ref) or (
                    step.result is None):
                continue
            given = [part for part in parts((step.args[1:], step.kwargs)) if part is not None]
            if all(isinstance(part, Tensor) and not bool(part.any()) for part in given):
                found.append([number])
                continue
            for chain in found:
                of = self._steps[chain[-1]]
                states = [Ref(chain[-1], place) for place in range(len(parts(of.result)))]
                if of.called is step.called and given == states:
                    chain.append(number)
                    break
            else:
                others.add(id(step.called))
        for chain in found:
            given = [self._steps[number].args[0] for number in chain]
            alone = id(self._steps[chain[0]].called) not in others
            if len(chain) > 1 and alone and not self._behind(given) & set(chain):
                yield chain

    def _behind(self, given: list[Ref]) -> set[int]:
        """The steps that values depend on."""
        todo, found = [ref.step for ref in given], set[int]()
        while todo:
            if (number := todo.pop()) not in found:
                found.add(number)
                todo += [ref.step for ref in refs((self._steps[number].args, self._steps[number].kwargs))]
        return found

    def join(self, chain: list[int]) -> None:
        """Put a layer in place of the calls of a cell."""
        first, cell = self._steps[chain[0]], self._steps[chain[0]].called
        given = [self._steps[number].args[0] for number in chain]
        stacked = self._add(Step(f"{first.name}.steps", "stack", torch.stack, (given, 1), {}, result=torch.stack(
            [self._tensor(ref) for ref in given], 1)))
        results = [parts(self._steps[number].result) for number in chain]
        states = tuple(state[None] for state in results[-1])
        outputs = torch.stack([each[0] for each in results], 1)
        layer = self._add(Step(first.name, "", _layer(cell), (stacked,), {}, result=(
            outputs, states if len(states) > 1 else states[0])))
        if len(states) > 1:  # The cells, which no layer gives.
            self._renamed |= {Ref(number, 1): Ref(layer.step, 2) for number in chain}
        self._pick(chain, layer)

    def merge(self) -> bool:
        """Let what is done with each step of a sequence alike be done with the sequence; whether there was anything."""
        groups: dict[Any, dict[int, int]] = {}
        for number, step in self._steps.items():
            kind = type(step.called).__name__ if step.module is not None else step.kind
            sources = [part for part in parts((step.args, step.kwargs)) if isinstance(part, Ref)]
            if kind not in STEPWISE or len(sources) != 1 or not isinstance(step.args[0], Ref):
                continue
            if (picked := self._picked(step.args[0])) is not None:
                source, at = picked
                rest = tuple(map(id, parts((step.args[1:], step.kwargs))))
                groups.setdefault((source, id(step.called) if step.module else kind, rest), {})[at] = number
        for (source, _, _), members in groups.items():
            came = self._tensor(source)
            if len(members) < 2 or sorted(members) != list(range(came.shape[1])):
                continue
            chain = [members[at] for at in range(len(members))]
            first = self._steps[chain[0]]
            outputs = torch.stack([self._steps[number].result for number in chain], 1)
            whole = self._add(replace(first, args=(source, *first.args[1:]), result=outputs))
            self._pick(chain, whole)
            return True
        return False

    def _pick(self, chain: list[int], whole: Ref) -> None:
        """Let the outputs of calls be the steps of a sequence."""
        for at, number in enumerate(chain):
            old = self._steps.pop(number)
            picked = self._add(Step(f"{old.name}.step", "select", torch.select, (whole, 1, at), {},
                                    result=parts(old.result)[0]))
            self._renamed[Ref(number, 0)] = picked
        self._steps = {number: replace(step, args=mapped(step.args, self._now), kwargs=mapped(step.kwargs, self._now))
                       for number, step in self._steps.items()}

    def _picked(self, ref: Ref) -> tuple[Ref, int] | None:
        """The sequence (N, T, …) of which a value is a step, and which one."""
        step = self._steps[ref.step]
        if not isinstance(source := next(iter(step.args), None), Ref) or step.kwargs:
            return None
        if step.kind == "select" and step.args[1] == 1:
            at = step.args[2]
        elif step.kind == "unbind" and step.args[1:] == (1,):
            at = ref.place
        elif step.kind == "getitem" and isinstance(key := step.args[1], tuple) and len(key) > 1 and all(
                part in (slice(None), ...) for part in (key[0], *key[2:])) and key[0] != ...:
            at = key[1]
        else:
            return None
        return (source, at % self._tensor(source).shape[1]) if isinstance(at, int) else None

    def _tensor(self, ref: Ref) -> Tensor:
        found: Tensor = parts(self._steps[ref.step].result)[ref.place]
        return found

    def _add(self, step: Step) -> Ref:
        number = 1 + max(*self._steps, len(self._before.steps), *(ref.step for ref in self._renamed.values()), 0)
        self._steps[number] = step
        return Ref(number, 0)

    def _now(self, part: Any) -> Any:
        while isinstance(part, Ref) and part in self._renamed:
            part = self._renamed[part]
        return part

    def record(self) -> Record:
        """All steps, each behind those that it takes."""
        order = dict[int, int]()
        for start in sorted(self._steps):
            todo = [start]
            while todo:
                step = self._steps[todo[-1]]
                due = [ref.step for ref in refs(mapped((step.args, step.kwargs), self._now))
                       if ref.step not in order]
                if todo[-1] in order or due:
                    todo += due
                    if todo[-1] in order:
                        todo.pop()
                    continue
                order[todo.pop()] = len(order)

        def ordered(part: Any) -> Any:
            part = self._now(part)
            return Ref(order[part.step], part.place) if isinstance(part, Ref) else part

        steps = [replace(self._steps[number], args=mapped(self._steps[number].args, ordered),
                         kwargs=mapped(self._steps[number].kwargs, ordered)) for number in order]
        return replace(self._before, steps=steps, output=mapped(self._before.output, ordered))


def _layer(cell: Any) -> nn.RNNBase:
    """The layer of a cell, with its weights."""
    layer: Any = CELLS[type(cell)](cell.input_size, cell.hidden_size, bias=cell.bias, batch_first=True,
                                   dtype=cell.weight_ih.dtype,
                                   **{"nonlinearity": cell.nonlinearity} if isinstance(cell, nn.RNNCell) else {})
    for name in ("weight_ih", "weight_hh", *(("bias_ih", "bias_hh") if cell.bias else ())):
        setattr(layer, f"{name}_l0", getattr(cell, name))
    return layer
