"""Errors for a user whose input is refused, and for one whose tools fail."""
import difflib
import errno
import os
from collections.abc import Iterable

__all__ = ["Refusal", "TimingMissed", "ToolError", "listed", "nearest", "some", "unusable"]

PATHS = {errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EROFS,
         errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTEMPTY, errno.EINVAL}
"""Errors that another path avoids; all others are the machine's."""

ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Refusal(ValueError):
    """Input that is refused, never guessed at. The message is one sentence: the rule, what was given, the way out.

    The command line prints it on stderr and exits with code 2.
    """


class ToolError(Exception):
    """A tool, the disk or the program itself that failed, though the input was in order.

    The message names the file or the tool, the tool's last lines, and the next step. The command line prints it on
    stderr and exits with code 3.
    """


class TimingMissed(ToolError):
    """A bitstream that would be too slow for the clock that was asked for.

    The command line prints it on stderr and exits with code 4.
    """


def nearest(word: str, legal: Iterable[str]) -> str:
    """The words "; did you mean 'x'?" for the legal name nearest to ``word``, or an empty string where none is near;
    for a word with which several names end, such as "epochs", the first three of them."""
    legal = list(legal)
    if len(ends := [repr(name) for name in legal if name.endswith(f"_{word}")][:3]) > 1:
        return f"; did you mean {', '.join(ends[:-1])} or {ends[-1]}?"
    close = difflib.get_close_matches(word, legal, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def listed(problems: Iterable[str], most: int = 20) -> str:
    """A line for each problem, each once; of more than ``most``, the first ones and how many more there are."""
    lines = list(dict.fromkeys(problems))
    return "\n".join(lines[:most] + ([f"and {len(lines) - most:,} more like these"] if len(lines) > most else []))


def some(words: Iterable[str], most: int = 20) -> str:
    """Words with commas between them; of more than ``most``, the first ones and how many more there are."""
    every = list(words)
    return ", ".join(every[:most]) + (f" and {len(every) - most:,} more" if len(every) > most else "")


def unusable(path: str | os.PathLike[str], error: OSError) -> Refusal | ToolError:
    """The error for one of the operating system at a file or folder: another path, more room, or a broken machine."""
    why = error.strerror or type(error).__name__
    if error.errno in PATHS:
        return Refusal(f"{path} cannot be used: {why}; choose another path")
    if error.errno in ROOM:
        return ToolError(f"{path} could not be written: {why}; make room, and run the same command again")
    return ToolError(f"{path} failed: {why}; correct this, and run the same command again")
