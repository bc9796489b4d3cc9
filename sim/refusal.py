"""What is said to a user whose input is refused, and to one whose tools fail."""
import difflib
from collections.abc import Iterable

__all__ = ["Refusal", "ToolError", "nearest"]


class Refusal(ValueError):
    """Input that is refused, never guessed at. The message is one sentence: the rule, what was given, the way out.

    The command line prints it on stderr and exits with code 2.
    """


class ToolError(Exception):
    """A tool, the disk or the program itself that failed, though the input was in order.

    The message names the file or the tool, the tool's last lines, and the next step. The command line prints it on
    stderr and exits with code 3.
    """


def nearest(word: str, legal: Iterable[str]) -> str:
    """The words "; did you mean 'x'?" for the legal name nearest to ``word``, or an empty string where none is near."""
    close = difflib.get_close_matches(word, list(legal), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""
