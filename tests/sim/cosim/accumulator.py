"""A design folder around the hand-written circuit ``accumulator.v``, and its golden model. A memory image chooses the
fault, so one build serves all."""
import shutil
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np

from circulant.sim import artifact, design
from circulant.sim.vectors import Vectors

NETWORK = "0123456789abcdef" * 4
CONSTANTS = (7, -300, 0, 1000, -1)
STEPS = 4
LATENCY = 8  # Six cycles of work, two beats.
STEP = 9  # Three beats, six cycles of work.


class Fault(IntEnum):
    """What the circuit does wrong; with ``where`` only in that sequence after a reset."""

    NONE = 0
    DROP = 1  # Leaves out the first output beat (where).
    WITHDRAW = 2  # Takes back tvalid when the beat is not taken.
    CHANGE = 3  # Changes tdata when the beat is not taken.
    CORRUPT = 4  # Gives a wrong beat after one that had to wait.
    UNENDED = 5  # Never sets tlast (where).
    EARLY = 6  # Sets tlast on the first beat already (where).
    EXTRA = 7  # Gives one beat more after 40 cycles without input.
    HANG = 8  # Takes nothing more (where).
    PADDING = 9  # Fills up with ones (where).
    STATEFUL = 10  # Keeps its sums through reset.
    LOUD = 11  # Keeps its tvalid through reset.
    SHY = 12  # Sets tvalid only when it sees tready.
    UNSIGNED = 13  # Does not extend the sign.
    GREEDY = 14  # Takes beats without tvalid.
    DEAF = 15  # Ignores reset and counts on a state that it never set.
    ENDLESS = 16  # Goes on giving beats, and takes no more.
    IMPATIENT = 17  # Gives a wrong sequence after a short reset that found it waiting within a vector.


def manifest(per: str) -> dict[str, Any]:
    def port(prefix: str, elements_per_beat: int, beats: int, width: int) -> dict[str, Any]:
        return {"prefix": prefix, "elements_per_beat": elements_per_beat, "container_bits": 16,
                "format": {"width": width, "frac": 4}, "elements": 5, "beats": beats}

    return {"name": "accumulator", "network": NETWORK, "top": "accumulator", "verilog": ["accumulator.v"],
            "images": ["constants.hex", "options.hex"], "clock": "clk", "reset": "rst",
            "streams": 1, "max_steps": None, "layers": [{"cycles": STEP + 2 * (per == "step")}],
            "input": port("s_axis", 2, 3, 12), "output": {**port("m_axis", 4, 2, 16), "per": per}}


def write_image(path: Path, *words: int) -> None:
    path.write_text("".join(f"{word & 0xFFFF:04x}\n" for word in words))


def write(folder: Path, fault: Fault = Fault.NONE, *, per: str = "sequence", where: int = 2, **changes: Any) -> Path:
    """Write the design; ``changes`` replace fields of its manifest."""
    folder.mkdir()
    shutil.copy(Path(__file__).with_name("accumulator.v"), folder)
    write_image(folder / "constants.hex", *CONSTANTS)
    write_image(folder / "options.hex", per == "step", fault, where)
    describe(folder, per, **changes)
    return folder


def describe(folder: Path, per: str = "sequence", **changes: Any) -> None:
    """Write the manifest of the files as they are."""
    files = design.hashes({path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".v", ".hex")})
    artifact.write_json(folder / "manifest.json", design.KIND, design.VERSION,
                        {**manifest(per), "files": files, **changes})


def vectors(count: int = 9, per: str = "sequence", lengths: list[int] | None = None) -> Vectors:
    """With lengths there is padding, which adds to a sum, and its outputs are wrong."""
    known = np.full(count, STEPS) if lengths is None else np.array(lengths)
    steps = np.arange(known.max())
    inputs = np.random.default_rng(7).integers(-2048, 2048, (len(known), len(steps), 5))
    sums = np.cumsum(inputs, axis=1) + CONSTANTS
    beyond = steps >= known[:, None]
    last = sums[np.arange(len(known)), known - 1]
    inputs[beyond], sums[beyond] = 77, -1
    return Vectors(inputs, sums if per == "step" else last, NETWORK, None if lengths is None else known)
