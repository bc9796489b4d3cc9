"""The programs of several layers for one array: weights, passes, slots and matrices of all of them, in their order."""
from collections.abc import Sequence
from copy import copy

import numpy as np

from circulant.hw.array.program import Pass, Place, Program
from circulant.sim.arith.fixed import Integers
from circulant.sim.refusal import Refusal

__all__ = ["Merged", "placed"]


class Merged(Program):
    """The program of a shared array, as the array sees it; which layer issues next is decided at run time.

    Parameters:
        programs: of the layers, for one shape.

    Raises:
        Refusal: when their block sizes or the digits of their twiddle factors differ.
    """

    def __init__(self, programs: Sequence[Program]) -> None:
        sizes = {(matrix.product.block_size, matrix.product.twiddle_bits)
                 for each in programs for matrix in each.matrices}
        if len(sizes) > 1:
            raise Refusal("Layers that share an array must have one block size and one number of twiddle bits, not "
                          f"{sorted(sizes)}; choose another hardware.objective")
        if len(heads := {each.parted_at for each in programs}) > 1:
            raise ValueError("Programs whose rows share lanes must have one number of columns at the head of the group "
                             f"of both vectors, not {sorted(heads)}")
        self.shape, self.whole, self.place = programs[0].shape, self, Place()
        self.parted_at = programs[0].parted_at
        self.joint_gates = max(each.joint_gates for each in programs)
        self.matrices = [matrix for each in programs for matrix in each.matrices]
        self.commands = [[issue for each in programs for issues in each.commands for issue in issues]]
        self.joined, self.slots = 0, sum(each.slots for each in programs)
        self._programs, self.places, self.passes = list(programs), [], []
        at = Place()
        for each in programs:
            self.places.append(at)
            self.passes += [Pass(p.matrix + at.matrices, p.first_row, p.slot + at.slots) for p in each.passes]
            at = Place(at.cycles + each.cycles, at.passes + len(each.passes), at.slots + each.slots,
                       at.matrices + len(each.matrices))

    def weights(self, row: int, column: int) -> Integers:
        return np.concatenate([each.weights(row, column) for each in self._programs])


def placed(programs: Sequence[Program]) -> list[Program]:
    """The programs, each with its place in that of the array that they share.

    Raises:
        Refusal: as `Merged`.
    """
    whole = Merged(programs)
    found = [copy(each) for each in programs]
    for each, place in zip(found, whole.places, strict=True):
        each.whole, each.place = whole, place
    return found
