"""The process that ends what a dead one leaves: groups of processes, whose numbers come through its standard input.

It runs by its path, without circulant, so that it is there at once. Its input ends with the process that started it,
whatever ends that. A signal at the end of a parent (PR_SET_PDEATHSIG) would reach a program, but not the programs that
this one has started, and it comes with the end of the thread that started it.
"""
import os
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress

__all__ = ["left", "main"]


def left(lines: Iterable[str]) -> set[int]:
    """The groups that began, as in "+123", and did not end, as in "-123"."""
    groups: set[int] = set()
    for line in lines:
        (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    return groups


def main() -> None:
    """End the groups that are left when the input ends."""
    for group in left(sys.stdin):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
