"""Records the tapped signals of a simulation: a copy of the Verilog writes each of them at every rising edge."""
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from circulant.sim.arith.fixed import Integers
from circulant.sim.cosim.diverge.taps import Signal, Tap

__all__ = ["blocks", "instrumented", "read"]


def instrumented(verilog: str, signals: Iterable[Signal], clock: str) -> tuple[str, dict[Signal, str]]:
    """The Verilog whose modules write these signals, one line for each rising edge; and the file of each signal."""
    files = {signal: f"tap_{n}.txt" for n, signal in enumerate(dict.fromkeys(signals))}
    for signal, file in files.items():
        handle = file.removesuffix(".txt")
        block = (f"  integer {handle};\n  initial {handle} = $fopen(\"{file}\", \"w\");\n"
                 f"  always @(posedge {clock}) $fwrite({handle}, \"%h\\n\", {signal.name});\n")
        verilog = re.sub(rf"(^module {signal.module} .*?)(^endmodule)", rf"\g<1>{_escaped(block)}\g<2>", verilog,
                         count=1, flags=re.MULTILINE | re.DOTALL)
    return verilog, files


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\")


def read(folder: Path, files: Mapping[Signal, str]) -> dict[Signal, list[int]]:
    """The values of each signal, of cycle 1, 2, …; unknown bits as zeros."""
    return {signal: [int(re.sub("[xzXZ]", "0", word), 16) for word in (folder / file).read_text().split()]
            for signal, file in files.items()}


def blocks(tap: Tap, values: Mapping[Signal, list[int]]) -> dict[Signal, Integers]:
    """Blocks that each signal of a tap carried, (cycles, block); those of a gate come from all its cells."""
    if tap.parallel:
        first, cells = tap.signals[0], len(tap.signals)
        each = np.stack([_elements(values[signal], 1, signal.width)[:, 0] for signal in tap.signals], axis=1)
        turns = max(1, tap.block // cells)
        windows = np.lib.stride_tricks.sliding_window_view(each, turns, axis=0)  # (cycles, cells, turns)
        return {first: windows.swapaxes(1, 2).reshape(len(windows), -1)}
    return {signal: _elements(values[signal], signal.width // width, width).reshape(-1, tap.block)
            for signal in tap.signals if (width := tap.width_in(signal))}


def _elements(words: list[int], count: int, width: int) -> Integers:
    """Two's-complement elements of words, the first in the low bits."""
    mask, sign = (1 << width) - 1, 1 << width - 1
    rows = [[((word >> n * width & mask) ^ sign) - sign for n in range(count)] for word in words]
    return np.array(rows, np.int64).reshape(-1, count)
