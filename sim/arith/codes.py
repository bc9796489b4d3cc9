"""Codes that guard the words of memories: parity, and single-error correction with double-error detection (SECDED).

SECDED is the code of Hsiao (IBM J. Res. Dev. 14, 1970): each bit of a word has a column of as many bits as there are
check bits, all columns differ and are odd. So a wrong bit gives its column as the syndrome, and two give an even one,
which is nobody's. A word of more than `MOST` bits is guarded in parts.
"""
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from circulant.sim.refusal import Refusal, nearest

__all__ = ["MOST", "PROTECTIONS", "Bits", "Code", "Decoded", "check_protection"]

PROTECTIONS = ("none", "parity", "secded", "scrub")
"""Values of ``hardware.protection``; "scrub" is SECDED whose memories are written right when a word was read wrong."""

MOST = 64
"""Bits that a group of check bits guards at the most: a syndrome of (72, 64) is two levels of look-up tables with six
inputs, and so is a correction."""

Bits = NDArray[np.bool_]


@lru_cache(maxsize=64)
def _columns(bits: int) -> tuple[int, ...]:
    """The columns of a part's data bits: the lightest, and of these the ones whose check bits have the fewest."""
    checks = next(r for r in range(2, bits + 3) if (1 << (r - 1)) - r >= bits)
    loads, found = [0] * checks, list[int]()
    for weight in range(3, checks + 1, 2):
        left = list(combinations(range(checks), weight))
        while left and len(found) < bits:
            best = min(left, key=lambda rows: (max(loads[row] for row in rows), sum(loads[row] for row in rows)))
            left.remove(best)
            found.append(sum(1 << row for row in best))
            for row in best:
                loads[row] += 1
    return tuple(found)


@dataclass(frozen=True)
class Decoded:
    """Words behind the decoder.

    Parameters:
        data: (words, width) what is taken for the word.
        corrected: (words,) whether a wrong bit, be it a check bit, was put right.
        uncorrected: (words,) whether wrong bits were seen that stay as they are.
    """

    data: Bits
    corrected: Bits
    uncorrected: Bits


@dataclass(frozen=True)
class Code:
    """The code of words of ``width`` bits; check bits lie above them.

    Parameters:
        kind: one of `PROTECTIONS`.
    """

    width: int
    kind: str

    @property
    def corrects(self) -> bool:
        """Whether a wrong bit of a part is put right."""
        return self.kind in ("secded", "scrub")

    @cached_property
    def parts(self) -> tuple[tuple[range, range, tuple[int, ...]], ...]:
        """The data bits of each part, its check bits, and the columns of both, as numbers."""
        if self.kind == "none":
            return ()
        count, begin, check, found = -(-self.width // MOST), 0, self.width, []
        for n in range(count):
            end = self.width * (n + 1) // count
            columns = _columns(end - begin) if self.corrects else (1,) * (end - begin)
            checks = max(columns).bit_length()
            found.append((range(begin, end), range(check, check + checks),
                          (*columns, *(1 << row for row in range(checks)))))
            begin, check = end, check + checks
        return tuple(found)

    @property
    def bits(self) -> int:
        """Bits of a word with its check bits."""
        return self.width + sum(len(checks) for _, checks, _ in self.parts)

    @cached_property
    def rows(self) -> tuple[tuple[int, ...], ...]:
        """For each bit of all syndromes the bits of the word that it is the parity of."""
        return tuple(tuple(bit for bit, column in zip((*data, *checks), columns, strict=True) if column >> row & 1)
                     for data, checks, columns in self.parts for row in range(len(checks)))

    def encode(self, word: int) -> int:
        """A word with its check bits."""
        for check, row in enumerate(self.rows, self.width):
            mask = sum(1 << bit for bit in row[:-1])
            word |= ((word & mask).bit_count() & 1) << check
        return word

    def decode(self, words: Bits) -> Decoded:
        """
        Parameters:
            words: (words, ``bits``) from the lowest bit, as they are read.
        """
        data, at = words[:, :self.width].copy(), 0
        corrected, uncorrected = np.zeros((2, len(words)), bool)
        for its, checks, columns in self.parts:
            syndrome = np.zeros(len(words), np.int64)
            for row in range(len(checks)):
                syndrome |= (words[:, self.rows[at + row]].sum(1) & 1) << row
            at += len(checks)
            place = {column: bit for bit, column in zip((*its, *checks), columns, strict=True)}
            for n in np.flatnonzero(syndrome).tolist():
                bit = place.get(int(syndrome[n])) if self.corrects else None
                if bit is not None and bit < self.width:
                    data[n, bit] ^= True
                (uncorrected if bit is None else corrected)[n] = True
        return Decoded(data, corrected, uncorrected)


def check_protection(protection: str) -> str:
    """
    Raises:
        Refusal: when there is no such protection.
    """
    if protection not in PROTECTIONS:
        raise Refusal(f"A protection must be one of {', '.join(PROTECTIONS)}, not {protection!r}"
                      f"{nearest(protection, PROTECTIONS)}")
    return protection
