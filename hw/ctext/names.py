"""Names of a network and its layers as C identifiers."""
import re
from collections.abc import Sequence

__all__ = ["identifier", "identifiers"]


WORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm main
    bool catch class delete explicit export false friend mutable namespace new nullptr operator private protected public
    template this throw true try typename using virtual and or not xor errno NULL EOF linux unix
"""
"""Words that C, C++ (whose programs may include the header) or the standard headers keep for themselves."""

RESERVED = frozenset(WORDS.split())


def identifier(name: str) -> str:
    """A legal C identifier that a public prefix and a file name are made of; "test" is the name of the self-test."""
    cleaned = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    if not cleaned or cleaned[0].isdigit() or cleaned.lower() == "test" or cleaned in RESERVED:
        return f"network_{cleaned}".rstrip("_")
    return cleaned


def identifiers(names: Sequence[str]) -> list[str]:
    """An identifier for each name, none of them another's prefix; numbered ones where the names do not give them."""
    found = [identifier(name) for name in names]
    if any(b == a or b.startswith(f"{a}_") for i, a in enumerate(found) for j, b in enumerate(found) if i != j):
        return [f"layer{i}" for i in range(1, len(names) + 1)]
    return found
