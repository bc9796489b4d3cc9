"""Costs of the generated C: instructions beside those of a dense loop, and time of an image beside onnxruntime."""
import shutil
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import emulator, instructions
from circulant.sim.refusal import Refusal

__all__ = ["Costs", "measure", "table"]


@dataclass(frozen=True)
class Costs:
    """The figures.

    Parameters:
        c_instructions, cortex_m4_instructions: of a layer, of those of the dense loop, by its inputs and outputs, and
            block size; the latter may be why they were skipped.
        lenet5_us: processor time of an image, or why it was skipped.
    """

    c_instructions: dict[str, dict[str, float]]
    cortex_m4_instructions: dict[str, dict[str, float]] | str
    lenet5_us: dict[str, float] | str


def measure(note: Callable[[str], None] = lambda text: None) -> Costs:
    """The figures.

    Raises:
        Refusal: when gcc or Valgrind is missing, before anything is measured.
    """
    if missing := [tool for tool in ("gcc", "valgrind") if not shutil.which(tool)]:
        raise Refusal(f"Instructions are counted with gcc and Valgrind, but PATH has no {' and no '.join(missing)}; "
                      "install what is missing")
    return Costs(instructions.ratios(instructions.of_host, note),
                 instructions.without_cortex_m() or instructions.ratios(instructions.of_cortex_m, note),
                 emulator.measure(note))


def table(found: Costs) -> dict[str, str]:
    """The rows for people."""
    rows: dict[str, str] = {}
    for what, ratios in (("x86-64-v3", found.c_instructions), ("Cortex-M4", found.cortex_m4_instructions)):
        rows |= {f"instructions on {what}": ratios} if isinstance(ratios, str) else {
            f"instructions of the dense loop's on {what}, {size} × {size}, k = {k}": f"{value:g}"
            for size, each in ratios.items() for k, value in each.items()}
    times = found.lenet5_us if isinstance(found.lenet5_us, dict) else {"": found.lenet5_us}
    return rows | {f"µs of a LeNet-5 image: {name}": str(value) for name, value in times.items()}
