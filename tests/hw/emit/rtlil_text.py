"""Modules of RTLIL by hand, for tests of what reads them."""
from circulant.hw.emit.rtlil import Module, modules


def module(wires: str, *body: str) -> Module:
    r"""A module ``\top``.

    Parameters:
        wires: ``name:width``, with ``<`` in front of an input and ``>`` of an output; a name of digits is one of
            Amaranth's own, as $1.
        body: cells, processes and connections, each a text or what `cell` gives.
    """
    lines = ["module \\top"]
    for n, each in enumerate(wires.split()):
        port = {"<": f" input {n}", ">": f" output {n}"}.get(each[0], "")
        name, width = each.lstrip("<>").split(":")
        lines.append(f"  wire width {width}{port} {'$' if name.isdigit() else chr(92)}{name}")
    for text in body:
        lines += [f"  {line}" for line in text.strip().split("\n")]
    (found,) = modules("\n".join([*lines, "end"]))
    return found


def cell(kind: str, name: str, *, signed: int = 0, **ports: str) -> str:
    """A cell ``$kind`` or an instance ``\\kind``, with the parameters that say the sign of its operands."""
    given = [f"  parameter \\{side}_SIGNED {signed}" for side in ("A", "B") if side in ports and kind[0] == "$"]
    return "\n".join([f"cell {kind} {name}", *given, *(f"  connect \\{port} {bits}" for port, bits in ports.items()),
                      "end"])
