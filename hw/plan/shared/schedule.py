"""Facts about a program that the counters of a layer are made with."""
from collections.abc import Sequence

from circulant.hw.array.lanes import array_latency
from circulant.hw.array.program import Issue, Program
from circulant.hw.array.row_buffers import rows_latency

__all__ = ["completed", "plain", "schedule"]


def completed(program: Program) -> list[tuple[int, list[int]]]:
    """The stage of each pass, and the cycles from its end to where each block that it makes whole can be fetched."""
    made, shape = list[tuple[int, list[int]]](), program.shape
    for number, p in enumerate(program.passes):
        stage, rows = program.matrices[p.matrix].stage, array_latency(
            program.matrices[p.matrix].product.block_size, shape) + rows_latency(shape.levels)
        found = []
        for row in range(shape.rows):
            index, at = program.row_of(number, row)
            kinds = len(program.matrices[index].kinds)
            beside = row // program.matrices[index].gates % shape.gives
            if at >= 0 and program.matrices[index].completes and at % kinds == kinds - 1 and not beside:
                found.append(rows + row // shape.chains)
        made.append((stage, found))
    return made


def schedule(program: Program) -> tuple[object, ...]:
    """All that the counters of a layer know of its program: layers of equal ones take the same cycles."""
    return (program.shape, type(program), program.joined, tuple(
        tuple((each.number, each.need, each.ends, each.alone, each.joins) for each in issues)
        for issues in program.sequences), tuple((stage, *found) for stage, found in completed(program)))


def plain(issues: Sequence[Issue], leads: int) -> list[tuple[int, int]]:
    """The number of issues from each one on, before one that ends a pass or is the last, and what they need."""
    found = [(0, 0)] * len(issues)
    for at in range(len(issues) - 2, -1, -1):
        issue, (count, need) = issues[at], found[at + 1]
        if not (issue.ends and (issue.alone or not leads)):
            found[at] = count + 1, max(need, issue.need)
    return found
