"""From a network to a folder of C: ``<name>.c``, ``<name>.h``, ``test.c``, ``Makefile``, ``manifest.json``."""
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from circulant.hw.c.source import Source
from circulant.hw.ctext.unit import beside, table
from circulant.hw.ctext.value import storage
from circulant.sim import artifact
from circulant.sim.arith.fixed import Format, Integers
from circulant.sim.arith.multiplier import EXACT
from circulant.sim.design import Stream, hashes
from circulant.sim.files.writing import replaced_folder
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal
from circulant.sim.vectors import Vectors

__all__ = ["CDesign", "generate_c"]

render = beside(__file__)

TESTS = 8
TEST_VALUES = 20_000
"""The self-test holds ``TESTS`` sequences, or fewer where they have more values than that, but always one."""


@dataclass(frozen=True, eq=False)
class CDesign:
    """The C of a network.

    Parameters:
        name: of the C file, and prefix of everything public in it.
        files: text by file name.
        manifest: what ``manifest.json`` holds.
    """

    network: Network
    name: str
    files: dict[str, str]
    manifest: Mapping[str, Any]

    KIND = "circulant-c-design"
    VERSION = 1

    @property
    def table_bytes(self) -> int:
        """Size of the constant tables: weights, biases, activations."""
        return int(self.manifest["table_bytes"])

    def write(self, folder: str | Path) -> Path:
        """Write the design as ``folder``, which holds a whole design or is left as it was.

        Raises:
            Refusal: when the folder exists and holds something that is no C design.
        """
        folder = Path(folder)
        if folder.exists() and not (folder.is_dir() and (not any(folder.iterdir()) or self._is_ours(folder))):
            raise Refusal(f"The folder of a C design must be new, empty or a C design's, but {folder} holds other "
                          "files; choose another one")
        with replaced_folder(folder) as fresh:
            for name, text in self.files.items():
                (fresh / name).write_bytes(text.encode())
            artifact.write_json(fresh / "manifest.json", self.KIND, self.VERSION, self.manifest)
        return folder

    @classmethod
    def _is_ours(cls, folder: Path) -> bool:
        try:
            artifact.read_json(folder / "manifest.json", cls.KIND, cls.VERSION)
        except Refusal:
            return False
        return True


def generate_c(network: Network, vectors: Vectors | None = None) -> CDesign:
    """C99 that computes the integers of ``network``, with a self-test of some ``vectors``, else of random ones.

    Raises:
        Refusal: when products are approximate, an integer on the way could leave 63 bits, the network holds a layer
            that the C target does not know, or the vectors are empty or another network's.
    """
    if network.multiplier != EXACT:
        raise Refusal(f"C computes with exact products, but those of network {network.name!r} are "
                      f"{network.multiplier!r}; quantize it with quantization.multiplier = 'exact'")
    source = Source(network)
    vectors = _random(network) if vectors is None else vectors
    files = {f"{source.name}.c": source.code, f"{source.name}.h": source.header,
             "test.c": _test(source, vectors), "Makefile": render("Makefile.j2", name=source.name)}

    def port(form: Format, elements: int) -> Stream:
        return {"format": form.as_json(), "elements": elements, "type": storage(form)}

    per = "step" if network.per_step else "sequence" if network.sequence else "vector"
    return CDesign(network, source.name, files, {
        "name": source.name, "network": network.hash,
        "files": hashes({name: text.encode() for name, text in files.items()}), "table_bytes": source.table_bytes,
        "input": port(network.input_format, network.flow.values),
        "output": port(network.output_format, source.outputs) | {"per": per}})


def _random(network: Network) -> Vectors:
    """Inputs over the whole format, its extremes among them."""
    rng, form = np.random.default_rng(0), network.input_format
    shape = TESTS, *((6,) if network.sequence else network.flow.grid or ()), network.flow.size
    x = rng.integers(form.lo, form.hi, shape, endpoint=True)
    x = np.where(rng.random(shape) < 0.1, rng.choice([form.lo, form.hi], shape), x)
    lengths = np.arange(TESTS) % 6 + 1 if network.ragged else None
    return Vectors(x, network.run_integers(x, lengths), network.hash, lengths)


def _test(source: Source, vectors: Vectors) -> str:
    if vectors.network != source.network.hash:
        raise Refusal(f"The vectors must be those of network {source.network.name!r}, but they are another network's; "
                      "make them again with Network.vectors")
    if not vectors.inputs.size:
        raise Refusal("The vectors of a self-test must hold at least one step, but they are empty; make them of data")
    network = source.network
    steps = vectors.steps[:TESTS] if network.sequence else np.ones(len(vectors.inputs[:TESTS]), int)
    taken = steps * network.flow.values
    given = (steps if network.per_step else np.ones_like(steps)) * source.outputs
    count = max(1, int((np.cumsum(taken + given) <= TEST_VALUES).sum()))

    def rows(values: Integers, sizes: Integers) -> list[str]:
        return [table(row.reshape(-1)[:size].tolist(), 8) for row, size in zip(values, sizes[:count], strict=False)]

    return render("test.c.j2", **source.common, count=count, steps=steps[:count].tolist(),
                  inputs=rows(vectors.inputs, taken), expected=rows(vectors.outputs, given))
