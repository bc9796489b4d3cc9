"""Parts of a generated design, counted in its Verilog through the hierarchy: multiplications and memory bits."""
import re
from collections.abc import Collection
from dataclasses import dataclass, field

__all__ = ["ResourceCount", "count_resources"]


@dataclass
class _Module:
    multipliers: int = 0
    memory_bits: int = 0
    children: list[tuple[str, dict[str, int]]] = field(default_factory=list)


@dataclass(frozen=True)
class ResourceCount:
    """``multipliers``: products of two variables, each an operator of its own. ``memory_bits``: of all memories."""

    multipliers: int
    memory_bits: int


MEMORIES = ("circulant_rom", "circulant_loadable", "circulant_ram")
"""Modules written by hand: fixed, with a port to write, without an image."""

_NAME = r"(\\\S+|[A-Za-z_]\w*)"
_MODULE = re.compile(rf"^module\s+{_NAME}\s*(.*?)^endmodule", re.M | re.S)
_PRODUCT = re.compile(r"^\s*assign\s[^;]*?=\s*([^;]*?\s\*\s[^;]*);", re.M)
_CONSTANT = re.compile(r"\s*-?\d+'[sS]?[bodh]\w+\s*")
_MEMORY = re.compile(rf"\breg\s+(?:signed\s+)?(?:\[(\d+):0\]\s+)?{_NAME}\s+\[(?:(\d+):0|0:(\d+))\]\s*;")
_INSTANCE = re.compile(rf"^\s*{_NAME}\s+(?:#\((.*?)\)\s*)?{_NAME}\s*\(\s*\.", re.M | re.S)
_PARAMETER = re.compile(r"\.(\w+)\(\s*(?:\d+'[sS]?[dh])?(\w+)\s*\)")


def count_resources(verilog: str, top: str, memories: Collection[str] = MEMORIES) -> ResourceCount:
    """Count what ``top`` and all below it hold; instances of ``memories`` count by their parameters WIDTH and DEPTH.

    Raises:
        ValueError: when an instantiated module is missing, or a line multiplies more than two values.
    """
    bare = re.sub(r"//[^\n]*|\(\*.*?\*\)", "", verilog)
    modules = {name.lstrip("\\"): _parse(body) for name, body in _MODULE.findall(bare)}
    sums: dict[str, ResourceCount] = {}

    def total(name: str) -> ResourceCount:
        if name not in modules:
            raise ValueError(f"The Verilog must define every module that it instantiates, but {name!r} is missing")
        if name not in sums:
            module = modules[name]
            multipliers, bits = module.multipliers, module.memory_bits
            for child, parameters in module.children:
                if child in memories:
                    bits += parameters["WIDTH"] * parameters["DEPTH"]
                    continue
                below = total(child)
                multipliers, bits = multipliers + below.multipliers, bits + below.memory_bits
            sums[name] = ResourceCount(multipliers, bits)
        return sums[name]

    return total(top)


def _parse(body: str) -> _Module:
    module = _Module()
    for expression in _PRODUCT.findall(body):
        factors = re.split(r"\s\*\s", expression)
        if len(factors) > 2:
            raise ValueError(f"A line of Verilog must hold one product at the most, not {expression!r}")
        module.multipliers += not any(map(_CONSTANT.fullmatch, factors))
    for msb, _, high, end in _MEMORY.findall(body):
        module.memory_bits += (int(msb or 0) + 1) * (int(high or end) + 1)
    for child, parameters, _ in _INSTANCE.findall(body):
        if child not in ("module", "assign", "always", "initial", "if", "else", "case", "begin"):
            module.children.append((child.lstrip("\\"), {
                key: int(value, 16 if re.search(rf"\.{key}\(\s*\d+'[sS]?h", parameters) else 10)
                for key, value in _PARAMETER.findall(parameters) if re.fullmatch(r"[0-9a-fA-F]+", value)}))
    return module
