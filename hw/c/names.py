"""Names of a network and its layers as C identifiers."""
import re
from collections.abc import Sequence

__all__ = ["identifier", "identifiers"]


def identifier(name: str) -> str:
    """A legal C identifier that a public prefix and a file name are made of; "test" is the name of the self-test."""
    cleaned = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    if not cleaned or cleaned[0].isdigit() or cleaned.lower() == "test":
        return f"network_{cleaned}".rstrip("_")
    return cleaned


def identifiers(names: Sequence[str]) -> list[str]:
    """An identifier for each name, none of them another's prefix; numbered ones where the names do not give them."""
    found = [identifier(name) for name in names]
    if any(b == a or b.startswith(f"{a}_") for i, a in enumerate(found) for j, b in enumerate(found) if i != j):
        return [f"layer{i}" for i in range(1, len(names) + 1)]
    return found
