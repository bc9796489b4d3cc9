"""Mutants planted and caught, design by design; survivors proved equivalent, or listed with what is known of them."""
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.designs import DESIGNS as SHAPES
from benchmarks.designs import Shape, network
from benchmarks.mutation import equivalence
from benchmarks.mutation.mutants import mutants, schemata
from benchmarks.mutation.play import Checker
from circulant.hw import generate
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.exercise import exercise
from circulant.sim.golden.network import Network

__all__ = ["DESIGNS", "measure", "of_design"]

DESIGNS = ("digits-gru", "interleaved", "lenet5", "reloadable")
"""Designs that are measured: a GRU, an LSTM with projection, a CNN, and one with a configuration port."""

MEMORY = 0.06
"""Share of the mutants that are bits of memory images."""

SEQUENCES, STEPS, IMAGES, DRAWN = 40, 8, 4, 32
"""Sequences of data, their steps, images of data, and drawn sequences; of images as many are drawn as there are."""


@dataclass(frozen=True)
class Survivor:
    """A mutant that nothing caught, and what is known of it."""

    mutant: str
    reason: str


def measure(names: tuple[str, ...], *, count: int, seed: int = 0, prove: bool = True,
            note: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """Mutants of some designs: figures of each, and a table.

    Parameters:
        count: mutants of each design.
        prove: whether Yosys is asked about survivors.
        note: told each survivor.
    """
    found = {}
    for name in names:
        note(name)
        made = network(name)
        found[name] = of_design(made, SHAPES[name], count=count, seed=seed, prove=prove, note=note)
    table = {name: f"{row['planted']} planted, {row['caught']} caught, {row['equivalent']} proved equivalent, "
                   f"{len(row['survivors'])} others; {row['seconds']:.0f} s" for name, row in found.items()}
    return {"benchmark": "mutation", "table": table, "designs": found}


def of_design(made: Network, shape: Shape, *, count: int, seed: int, prove: bool,
              note: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """The figures of one design.

    Parameters:
        shape: its hardware options.
    """
    start, rng = time.perf_counter(), np.random.default_rng(seed)
    image = made.flow.grid is not None
    size = (IMAGES if image else SEQUENCES, *((STEPS, made.inputs) if made.sequence else made.shape or (made.inputs,)))
    vectors = made.vectors(rng.normal(0, 0.5, size))
    drawn = exercise(made, IMAGES if image else DRAWN, steps=STEPS).vectors
    with tempfile.TemporaryDirectory(prefix="circulant-mutation-") as folder:
        manifest = Manifest.load(generate(made, **shape.options).write(Path(folder) / "design"))
        verilog = "".join(path.read_text() for path in manifest.verilog)
        in_memory = round(count * MEMORY)
        planted = mutants(verilog, count - in_memory, seed)
        checker = Checker(manifest, schemata(verilog, planted, manifest.top), vectors, drawn)
        built = time.perf_counter() - start
        by, kinds, equal, survivors = Counter[str](), Counter[str](), 0, []
        try:
            for mutant in planted:
                verdict = checker.verdict(mutant.number)
                if verdict.caught:
                    by[verdict.caught] += 1
                    kinds[mutant.kind] += 1
                elif prove and equivalence.available() and equivalence.equivalent(verilog, mutant):
                    equal += 1
                    note(f"equivalent: {mutant}")
                else:
                    survivors.append(Survivor(str(mutant), "its value differs, and nothing that is seen depends on it"
                                              if verdict.infected else "its value never differs in any run"))
                    note(f"survived: {survivors[-1]}")
            for _ in range(in_memory):
                name, text, place = _flipped(manifest, rng)
                verdict = checker.verdict(0, {name: text})
                if verdict.caught:
                    by[verdict.caught] += 1
                    kinds["memory"] += 1
                else:
                    survivors.append(Survivor(f"memory: {name}, {place}", "no word that is seen depends on it"))
                    note(f"survived: {survivors[-1]}")
        finally:
            checker.close()
    return {"planted": len(planted) + in_memory, "caught": sum(by.values()), "equivalent": equal,
            "caught_by": dict(by), "caught_of": dict(kinds),
            "planted_of": dict(Counter(each.kind for each in planted)) | {"memory": in_memory},
            "survivors": [vars(each) for each in survivors], "seconds_build": built,
            "seconds": time.perf_counter() - start}


def _flipped(manifest: Manifest, rng: np.random.Generator) -> tuple[str, str, str]:
    """Name and text of an image with one bit changed, and where."""
    path = manifest.images[int(rng.integers(len(manifest.images)))]
    lines = path.read_text().splitlines()
    at = int(rng.choice([n for n, line in enumerate(lines) if line.strip() and not line.startswith(("//", "@"))]))
    digit, bit = int(rng.integers(len(lines[at].strip()))), int(rng.integers(4))
    word = lines[at].strip()
    lines[at] = word[:digit] + f"{int(word[digit], 16) ^ 1 << bit:x}" + word[digit + 1:]
    return path.name, "\n".join(lines) + "\n", f"line {at + 1}, digit {digit}"


