"""Failures of points that are tried one after the other: their reasons, and when there are enough of them."""
from collections.abc import Sequence

from circulant.exits import FAILED
from circulant.sim.refusal import Refusal, ToolError
from circulant.sweep.rows import Row
from circulant.sweep.sheets import failures

__all__ = ["SAME", "ended", "hopeless", "reasons"]

SAME = 3
"""Failures in a row with the same reason, after which nothing more is tried."""

Rows = Sequence[Row]


def hopeless(rows: Rows, same: int = SAME) -> bool:
    """Whether the last rows failed for the same reason."""
    last = [row["reason"] for row in rows[-same:]]
    return len(last) == same and len(set(last)) == 1 and bool(last[0])


def reasons(rows: Rows) -> str:
    """The reasons of the rows that failed, the most frequent first, with their numbers."""
    return "; ".join(f"{why} ({count} times)" if count > 1 else why for why, count in failures(rows).most_common())


def ended(words: str, rows: Rows) -> Refusal | ToolError:
    """The error that failures amount to: the user's, if each of them is."""
    return (ToolError if any(row.get("code") == FAILED for row in rows if row["reason"]) else Refusal)(words)
