"""The issue bundle: what a `circulant.hw.array.lanes.LaneArray` is told of the columns that it takes in a cycle."""
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from circulant.hw.array.program import Program
from circulant.hw.stream.pipeline import steps

__all__ = ["SPECTRA", "issue_signature", "issues_of", "spectra_latency"]

SPECTRA = 2
"""Cycles from an issue to the spectra of its columns: the memory that holds them, a register."""


def spectra_latency(levels: int) -> int:
    """The same for so many levels of logic: where these allow two steps between two registers, the memory alone."""
    return SPECTRA if steps(levels) == 1 else 1


def issue_signature(*, cycles: int, passes: int, slots: int = 1, fold: int = 1,
                    joint: bool = False, parted: bool = False) -> wiring.Signature:
    """Interface from the one who counts, a `Sequencer` or a `LineBuffer`, to the array.

    Parameters:
        cycles: issues of a step.
        passes: in which they are.
        slots: accumulators, sums that grow side by side.
        fold: cycles that a block product takes.
        joint: whether there are passes with rows whose sums go on from one command to another.
        parted: whether rows share lanes.

    Members:
        valid: block products of a group of columns are issued, or with a fold a part of them.
        phase: which part of the products of a fold is issued.
        weight: address of the weights in the memories of all lanes.
        number: number of the pass that the group belongs to.
        slot: accumulator in which the sums of the pass grow.
        first: the group starts its pass.
        ends: the group ends its pass.
        goes_on: ``first`` is not meant for rows whose sums go on from one command to another.
        holds: with ``ends``, rows whose sums go on do not leave.
        head: the columns at the head of the group are the input's.
        tail: the columns behind the head of the group are the input's.
    """
    return wiring.Signature({
        "valid": Out(1), "phase": Out(range(fold)),
        "weight": Out(range(cycles)), "number": Out(range(passes)), "slot": Out(range(slots)),
        "first": Out(1), "ends": Out(1), **({"goes_on": Out(1), "holds": Out(1)} if joint else {}),
        **({"head": Out(1), "tail": Out(1)} if parted else {}),
    })


def issues_of(program: Program) -> wiring.Signature:
    """The bundle for the array of a program."""
    return issue_signature(cycles=program.cycles, passes=len(program.passes), slots=program.slots,
                           fold=program.shape.fold, joint=bool(program.joint_gates[0]),
                           parted=bool(program.shape.shared))
