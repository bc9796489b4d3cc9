"""What is said to a user whose input is refused."""
import difflib
from collections.abc import Iterable

__all__ = ["Refusal", "nearest"]


class Refusal(ValueError):
    """Input that is refused, never guessed at. The message is one sentence: the rule, what was given, the way out.

    The command line prints it on stderr and exits with code 2.
    """


def nearest(word: str, legal: Iterable[str]) -> str:
    """The words "; did you mean 'x'?" for the legal name nearest to ``word``, or an empty string where none is near."""
    close = difflib.get_close_matches(word, list(legal), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""
