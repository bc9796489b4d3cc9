"""From a network to a folder of C: ``<name>.c``, ``<name>.h``, ``test.c``, ``Makefile``, ``manifest.json``."""
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from circulant.hw.c import gru, linear
from circulant.hw.c.names import identifier, identifiers
from circulant.hw.c.unit import Array, Stage, Unit, render, table
from circulant.hw.c.value import storage
from circulant.sim import artifact
from circulant.sim.fixed import Format, Integers
from circulant.sim.gru import Gru
from circulant.sim.linear import Linear
from circulant.sim.network import Network
from circulant.sim.refusal import Refusal
from circulant.sim.vectors import Vectors

__all__ = ["CDesign", "generate_c"]

EMITTERS: dict[type, Callable[..., Stage]] = {Gru: gru.emit, Linear: linear.emit}
"""Who writes the C of a layer: one file each, called with unit, prefix, layer and whether its x comes from outside."""

TESTS = 8
TEST_VALUES = 20_000
"""The self-test holds so many sequences, fewer where their integers are more than so many, but always one."""


@dataclass(frozen=True, eq=False)
class CDesign:
    """The C of a network.

    Parameters:
        name: of the C file and prefix of everything public in it.
        files: text by file name.
        manifest: what ``manifest.json`` holds.
    """

    network: Network
    name: str
    files: dict[str, str]
    manifest: dict[str, Any]

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
        if folder.exists() and not (folder.is_dir() and (not any(folder.iterdir()) or self._written(folder))):
            raise Refusal(f"The folder of a C design must be new, empty or a C design's, but {folder} holds other files; "
                          "choose another one")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as temporary:
            fresh = Path(temporary) / "new"
            fresh.mkdir()
            for name, text in self.files.items():
                (fresh / name).write_text(text, "utf-8")
            artifact.write_json(fresh / "manifest.json", self.KIND, self.VERSION, self.manifest)
            if folder.exists():
                folder.rename(Path(temporary) / "old")
            shutil.move(fresh, folder)
        return folder

    @classmethod
    def _written(cls, folder: Path) -> bool:
        try:
            artifact.read_json(folder / "manifest.json", cls.KIND, cls.VERSION)
        except Refusal:
            return False
        return True


def generate_c(network: Network, vectors: Vectors | None = None) -> CDesign:
    """C99 that computes the integers of ``network``, with a self-test of some ``vectors``, else of random ones.

    Raises:
        Refusal: when an integer on the way could leave 63 bits, the network holds a layer that the C target does not
            know, or the vectors are another network's.
    """
    if vectors is None:
        vectors = _random(network)
    if vectors.network != network.hash:
        raise Refusal(f"The vectors must be those of network {network.name!r}, but they are another network's; make them "
                      "anew with Network.vectors")
    source = Source(network)
    files = {f"{source.name}.c": source.code, f"{source.name}.h": source.header, "test.c": _test(source, vectors),
             "Makefile": render("Makefile.j2", name=source.name)}

    def port(form: Format, elements: int) -> dict[str, Any]:
        return {"format": form.as_json(), "elements": elements, "type": storage(form)}

    manifest = {
        "name": source.name, "network": network.hash, "files": sorted(files), "table_bytes": source.unit.table_bytes,
        "input": port(network.input_format, network.inputs),
        "output": port(network.output_format, network.outputs)
        | {"per": "step" if network.per_step else "sequence" if network.sequence else "vector"},
    }
    return CDesign(network, source.name, files, manifest)


class Source:
    """The C of a network without its self-test.

    Parameters:
        network: what it computes.

    Members:
        name: prefix of everything public.
        code, header: the texts of ``<name>.c`` and ``<name>.h``.
    """

    def __init__(self, network: Network) -> None:
        self.network, self.name = network, identifier(network.name)
        self.unit = Unit(self.name)
        prefixes = identifiers([layer.name for layer in network.layers])
        stages = [self._stage(layer, prefix, foreign=n == 0)
                  for n, (layer, prefix) in enumerate(zip(network.layers, prefixes, strict=True))]
        states = [n for n, stage in enumerate(stages) if stage.recurrent]
        behind = states[-1] + 1 if states else 0
        steps, ends = stages[:behind], stages[behind:]
        last = stages[-1]
        kept = [stage.output for stage in stages if stage.recurrent or stage is not last]
        common = self.common | {"stages": stages, "table_bytes": self.unit.table_bytes}
        self.header = render("header.h.j2", **common, kept=kept, inputs=network.inputs, outputs=network.outputs,
                             input_format=network.input_format, output_format=network.output_format,
                             input_type=storage(network.input_format), output_type=storage(network.output_format))
        self.code = render("network.c.j2", **common, body="\n".join(
                               [*self.unit.functions.values(), *(stage.text for stage in stages)]),
                           recurrent=[stage.output for stage in stages if stage.recurrent],
                           head=_calls(steps, "x", None), tail=_calls(ends, _place(steps[-1]) if steps else "x", last.output))

    @property
    def common(self) -> dict[str, Any]:
        """What every template is given."""
        network = self.network
        return {"name": self.name, "NAME": self.name.upper(), "title": re.sub(r"[^\w .,+-]", "_", network.name),
                "hash": network.hash, "sequence": network.sequence, "per_step": network.per_step}

    def _stage(self, layer: Any, prefix: str, *, foreign: bool) -> Stage:
        if type(layer) not in EMITTERS:
            raise Refusal(f"The layers of the C target must be of the kinds "
                          f"{', '.join(kind.kind for kind in EMITTERS)}, but {layer.name!r} is of the kind {layer.kind}; "
                          "generate Verilog, or leave it out")
        return EMITTERS[type(layer)](self.unit, prefix, layer, foreign=foreign)


def _place(stage: Stage) -> str:
    return f"state->{stage.output.name}"


def _calls(stages: Sequence[Stage], x: str, end: Array | None) -> str:
    """Calls of the stages, one after the other, from ``x`` on; with ``end``, the last result goes to y."""
    lines = []
    for stage in stages:
        y = "y" if stage.output is end and not stage.recurrent else _place(stage)
        lines.append(f"    {stage.prefix}_layer(state, {x}, {y});")
        x = y
    if end is not None and x != "y":
        lines += [f"    for (int i = 0; i < {end.length} * LANES; i++)", f"        y[i] = {x}[i];"]
    return "\n".join(lines)


def _random(network: Network) -> Vectors:
    """Inputs over the whole format, its extremes among them."""
    rng, form = np.random.default_rng(0), network.input_format
    shape = (TESTS, 6, network.inputs) if network.sequence else (TESTS, network.inputs)
    x = rng.integers(form.lo, form.hi, shape, endpoint=True)
    x = np.where(rng.random(shape) < 0.1, rng.choice([form.lo, form.hi], shape), x)
    return Vectors(x, network.run_integers(x), network.hash)


def _test(source: Source, vectors: Vectors) -> str:
    each = vectors.inputs[0].size + vectors.outputs[0].size if len(vectors) else 1
    count = max(1, min(TESTS, TEST_VALUES // each, len(vectors)))
    if not len(vectors) or not vectors.inputs.size:
        raise Refusal("The vectors of a self-test must hold at least one step, but they are empty; make them of more data")

    def rows(values: Integers) -> list[str]:
        return [table(row.tolist(), 8) for row in values[:count].reshape(count, -1)]

    return render("test.c.j2", **source.common, count=count, inputs=rows(vectors.inputs), expected=rows(vectors.outputs),
                  steps=vectors.inputs.shape[1])
