"""Choices: the values of bits that a process assigns, as trees in place of statements."""
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from circulant.hw.emit.rtlil import Bits, Chunk, Process, Switch, joined, low_bits, span, width_of

__all__ = ["Choice", "Segment", "Tree", "leaves", "lowest", "segments", "selectors"]


@dataclass(frozen=True, eq=False, slots=True)
class Choice:
    """The value of the first case of which a pattern is that of the selector; a pattern is of 0, 1 and -."""

    selector: Bits
    cases: tuple[tuple[tuple[str, ...], "Tree"], ...]
    otherwise: "Tree"


Tree = Bits | Choice


@dataclass(frozen=True, slots=True)
class Segment:
    """Bits ``low`` to ``low`` + ``width`` - 1 of what a process assigns to, and their value."""

    low: int
    width: int
    value: Tree


def segments(process: Process, name: Callable[[Tree, int], Bits]) -> list[Segment]:
    """Assignments of a process, in as few segments as have one value each.

    Parameters:
        name: gives a value of so many bits that is needed more than once a wire of its own.
    """
    ends = {end for target in _targets(process) for end in (target.low, target.low + target.width)}
    order = sorted(ends)
    found: list[Segment] = []
    for low, high in pairwise(order):
        value = _Segment(low, high - low, name).value(process, ())
        joined = _joined(value, found[-1].value) if found else None
        if joined is None:
            found.append(Segment(low, high - low, value))
        else:
            found[-1] = Segment(found[-1].low, high - found[-1].low, joined)
    return found


def leaves(tree: Tree) -> Iterator[Bits]:
    """All values that are chosen from."""
    if isinstance(tree, Choice):
        for _, value in tree.cases:
            yield from leaves(value)
        yield from leaves(tree.otherwise)
    else:
        yield tree


def selectors(tree: Tree) -> Iterator[Bits]:
    """All values that choices are made by; one for each of its conditions."""
    if isinstance(tree, Choice):
        for _, value in tree.cases:
            yield tree.selector
            yield from selectors(value)
        yield from selectors(tree.otherwise)


def lowest(tree: Tree, width: int) -> Tree:
    """The lowest bits of a value."""
    if isinstance(tree, Choice):
        return Choice(tree.selector, tuple((patterns, lowest(value, width)) for patterns, value in tree.cases),
                      lowest(tree.otherwise, width))
    return low_bits(tree, width)


def _targets(process: Process) -> Iterator[Chunk]:
    for each in process:
        if isinstance(each, Switch):
            for case in each.cases:
                yield from _targets(case.body)
        else:
            yield each[0]


class _Segment:
    """Some bits that are assigned together."""

    def __init__(self, low: int, width: int, name: Callable[[Tree, int], Bits]) -> None:
        self._low, self._width, self._name = low, width, name

    def value(self, process: Process, before: Tree) -> Tree:
        """The value behind some statements."""
        for each in process:
            if not isinstance(each, Switch):
                target, bits = each
                if target.low <= self._low < target.low + target.width:
                    before = span(bits, self._low - target.low, self._width)
            elif any(target.low <= self._low < target.low + target.width for target in _targets([each])):
                before = self._chosen(each, before)
        return before

    def _chosen(self, switch: Switch, before: Tree) -> Tree:
        if not switch.selector:  # It is no choice: it holds assignments behind others.
            for case in switch.cases:
                before = self.value(case.body, before)
            return before
        cases: list[tuple[tuple[str, ...], Tree]] = []
        otherwise = before
        for case in switch.cases:
            value = self.value(case.body, before)
            if not case.patterns:
                otherwise = value
                break
            cases.append((tuple(case.patterns), value))
        else:
            patterns = {pattern for each, _ in cases for pattern in each if "-" not in pattern}
            if len(patterns) == 1 << width_of(switch.selector):
                otherwise = cases.pop()[1]
        while cases and (cases[-1][1] is otherwise or cases[-1][1] == otherwise):
            cases.pop()
        if not cases:
            return otherwise
        found = Choice(switch.selector, tuple(cases), otherwise)
        if isinstance(before, Choice) and _count(found, before) > 1:
            return _replaced(found, before, self._name(before, self._width))
        return found


def _joined(high: Tree, low: Tree) -> Tree | None:
    """One value for two side by side that are chosen in the same way; None where they are not."""
    if isinstance(high, Choice) and isinstance(low, Choice):
        if high.selector != low.selector or [each for each, _ in high.cases] != [each for each, _ in low.cases]:
            return None
        values = [_joined(mine, its) for (_, mine), (_, its) in zip(high.cases, low.cases, strict=True)]
        otherwise = _joined(high.otherwise, low.otherwise)
        if otherwise is None or None in values:
            return None
        return Choice(high.selector, tuple((patterns, value) for (patterns, _), value in zip(
            high.cases, values, strict=True) if value is not None), otherwise)
    if isinstance(high, Choice) or isinstance(low, Choice):
        return None
    return joined(high, low)


def _count(tree: Tree, part: Choice) -> int:
    if tree is part:
        return 1
    if isinstance(tree, Choice):
        return sum(_count(value, part) for _, value in tree.cases) + _count(tree.otherwise, part)
    return 0


def _replaced(tree: Tree, part: Choice, by: Bits) -> Tree:
    if tree is part:
        return by
    if isinstance(tree, Choice):
        return Choice(tree.selector, tuple((patterns, _replaced(value, part, by)) for patterns, value in tree.cases),
                      _replaced(tree.otherwise, part, by))
    return tree
