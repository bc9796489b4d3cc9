"""Parts of a circuit from the inside out: a proof about one holds whatever is around it."""
import re
from collections.abc import Iterator
from functools import lru_cache

__all__ = ["RESET", "parts"]

RESET = "rst"
"""The reset of a module: the circuit's own, where its instance says so."""


def parts(verilog: str, module: str, top: str) -> Iterator[str]:
    """A module, and those around it from the inside out; the whole circuit is the last one."""
    instances = _around(verilog)
    while module != top:
        around = instances[module]
        if all(resets for _, resets in around):
            yield module
        names = {name for name, _ in around}
        module = names.pop() if len(names) == 1 else top
    yield top


@lru_cache(maxsize=2)
def _around(verilog: str) -> dict[str, set[tuple[str, bool]]]:
    """By module, those with instances of it, and whether these have the reset of what is around them."""
    found = dict[str, set[tuple[str, bool]]]()
    for outer in re.finditer(r"^module (\w+) .*?^endmodule", verilog, re.MULTILINE | re.DOTALL):
        for inner in re.finditer(r"^  (\w+) (?:#\([^;]*?\) )?\w+ \(\n(.*?)^  \);", outer[0], re.MULTILINE | re.DOTALL):
            found.setdefault(inner[1], set()).add((outer[1], f".{RESET}({RESET})" in inner[2]))
    return found
