"""A design that mutants are planted in: what is played through it, and the proofs about it."""
import hashlib
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

import benchmarks
from benchmarks.designs import Shape
from benchmarks.mutation.extreme import aligned, broken_lines, each_segment, extreme
from benchmarks.mutation.mutants import Mutant, selected
from benchmarks.mutation.play import Checker
from benchmarks.mutation.prover import Prover
from benchmarks.resume import Record
from circulant.hw import generate, writes
from circulant.sim.configuration import ADDRESS_BITS, RESUME, WAIT, WORD, WRITE, Operation
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.cosim.state_exchange import Session
from circulant.sim.exercise import exercise
from circulant.sim.golden.network import Network
from circulant.sim.passes.bases import activations
from circulant.sim.vectors import Vectors

__all__ = ["Flipped", "Subject", "stimuli"]

OTHERS = ((extreme, 4, False), (broken_lines, 6, False), (extreme, 2, True), (each_segment, 8, False))
"""Other networks that have the same Verilog, see `benchmarks.mutation.extreme`: how they are drawn, how many, and
whether their samples are `aligned` with the transform."""

TABLES = (broken_lines, each_segment)
"""Networks of `OTHERS` that change tables of activations."""

STIMULI = ("benchmarks/mutation/extreme.py", "benchmarks/mutation/play.py", "benchmarks/mutation/subject.py",
           "sim/exercise", "sim/cosim/stimuli.py", "sim/cosim/drive.cpp", "sim/cosim/design.cpp",
           "sim/cosim/stalls.h", "sim/cosim/frames.py", "sim/cosim/config.py", "sim/cosim/harness.py",
           "sim/cosim/judge/check.py", "sim/cosim/judge/pace.py", "sim/cosim/judge/restarts.py")
"""Files that say how a mutant is played and judged: one that survived is played again where they have changed."""

EXCHANGED = 4
"""Sequences that are played between exchanges of networks and states."""

SEQUENCES, STEPS, IMAGES, DRAWN = 40, 8, 4, 32
"""Sequences of data, their steps, images of data, and drawn sequences; of images as many are drawn as there are."""

MANY = 100
"""Times as many samples of data, alone: a lowest bit seldom reaches a result."""

UNTRIED = {"proved": "", "why": "no proof was tried"}

COMMENTS = re.compile(r"  //[^\n]*|\(\* src[^*]*\*\)")


@dataclass(frozen=True)
class Flipped:
    """An image of a memory with one bit changed.

    Parameters:
        place: line and digit in the file.
        text: the changed file.
    """

    name: str
    place: str
    text: str

    @classmethod
    def drawn(cls, manifest: Manifest, rng: np.random.Generator) -> Self:
        path = manifest.images[int(rng.integers(len(manifest.images)))]
        lines = path.read_text().splitlines()
        at = int(rng.choice([n for n, line in enumerate(lines) if line.strip() and not line.startswith(("//", "@"))]))
        word = lines[at].strip()
        digit, bit = int(rng.integers(len(word))), int(rng.integers(4))
        lines[at] = word[:digit] + f"{int(word[digit], 16) ^ 1 << bit:x}" + word[digit + 1:]
        return cls(path.name, f"line {at + 1}, digit {digit}, bit {bit}", "\n".join(lines) + "\n")

    def __str__(self) -> str:
        return f"memory: {self.name}, {self.place}"


class Subject:
    """A design that mutants are planted in, and what is played through it."""

    def __init__(self, made: Network, shape: Shape, folder: Path, seed: int) -> None:
        self._made, self._shape, self._folder, self._seed = made, shape, folder, seed
        self._design = generate(made, **shape.options, objective="throughput")
        self.manifest = Manifest.load(self._design.write(folder / "design"))
        self.verilog = "".join(path.read_text() for path in self.manifest.verilog)

    def hash(self, text: str) -> str:
        """The hash of the Verilog with mutants, without comments and where it comes from, and of the images."""
        whole = hashlib.sha256(COMMENTS.sub("", text).encode())
        for path in self.manifest.images:
            whole.update(path.read_bytes())
        return whole.hexdigest()[:16]

    def checker(self, text: str) -> Checker:
        """A simulator of the Verilog with mutants."""
        return Checker(self.manifest, text, self._data(1), self._drawn(self._made), many=self._data(MANY),
                       others=list(self._others()),
                       session=self._session if self.manifest.configuration else None)

    def proofs(self, left: Sequence[Mutant | Flipped], whole: str, folder: Path | None,
               note: Callable[[str], None], *, tried: bool = True) -> dict[str, dict[str, str]]:
        """How each mutant was proved equivalent, or why not.

        Parameters:
            whole: the Verilog with all mutants.
            folder: of a record of these.
            tried: whether a proof is tried that the record does not have.
        """
        key = f"{self._made.name}-{self.hash(selected(whole))}"
        record: Record[dict[str, str]] = Record(folder / f"{key}-proofs.jsonl" if folder else None, dict)
        prover = cache(lambda: Prover(self.manifest, self.verilog, whole))
        images = {path.name: path.read_text() for path in self.manifest.images}
        found = {}
        for each in left:
            found[str(each)] = record[str(each)] or UNTRIED if not tried else record.get(str(each), partial(
                lambda each: prover().mutant(each) if isinstance(each, Mutant)
                else prover().image(each.name, images[each.name], each.text), each))
            note(f"{found[str(each)]['proved'] or 'not proved'}: {each}")
        return found

    def _data(self, times: int) -> Vectors:
        """Samples such as those of data, ``times`` as many as are usual."""
        made, rng = self._made, np.random.default_rng(self._seed)
        shape = (STEPS, made.flow.size) if made.sequence else made.shape or (made.flow.size,)
        count = IMAGES if made.flow.grid is not None else SEQUENCES
        return made.vectors(rng.normal(0, 0.5, (times * count, *shape)))

    def _drawn(self, made: Network) -> Vectors:
        return exercise(made, IMAGES if made.flow.grid is not None else DRAWN, steps=STEPS).vectors

    def _session(self, patience: int) -> tuple[Session, NDArray[np.int64]]:
        """Exchanges with a network of other weights and tables, and the sequences that are played meanwhile."""
        other, drawn = broken_lines(extreme(self._made)), self._drawn(self._made)
        pairs = writes(self._design, other)
        session = Session.of(self.manifest, self._made, other, pairs, patience=patience)
        return replace(session, load_other=self._shuffled(pairs)), drawn.inputs[:EXCHANGED]

    def _shuffled(self, pairs: Sequence[tuple[int, int]]) -> list[Operation]:
        """The writes of a network, word by word in a drawn order: of two that go to one memory the later would hide the
        earlier. Behind each come what must change nothing: a write to an address that no memory has, and a read of one
        that cannot be read, which gives zero."""
        windows, rng = self.manifest.require_configuration().windows, np.random.default_rng(self._seed)
        rest, words = iter(pairs), list[list[tuple[int, int]]]()
        for window in windows:
            if window.state is None:
                words += ([*islice(rest, window.parts)] for _ in range(window.words))
        found = list[Operation]()
        for n in rng.permutation(len(words)):
            found += (Operation(WRITE, address, value) for address, value in words[n])
            stray = words[n][0][0] ^ 1 << int(rng.integers(ADDRESS_BITS))
            if stray > RESUME and not any(window.first <= stray < window.first + window.size for window in windows):
                found.append(Operation(WRITE, stray, int(rng.integers(1 << WORD))))
            found.append(Operation(WAIT, words[int(rng.integers(len(words)))][-1][0], 0, (1 << WORD) - 1))
        return found

    def _others(self) -> Iterator[tuple[Manifest, Vectors]]:
        """The designs of `OTHERS` that this network can be, and samples.

        Raises:
            AssertionError: when the Verilog of one is another one.
        """
        for draw, count, waves in OTHERS:
            if draw in TABLES and not any(activations(layer) for layer in self._made.layers):
                continue
            for n in range(count):
                other = draw(self._made, n)
                inputs = aligned(other, DRAWN, STEPS, n) if waves else None
                if waves and inputs is None:
                    continue
                folder = Path(tempfile.mkdtemp(prefix="other-", dir=self._folder))
                manifest = Manifest.load(generate(other, **self._shape.options, objective="throughput").write(folder))
                assert self.verilog == "".join(path.read_text() for path in manifest.verilog), "only images may differ"
                yield manifest, self._drawn(other) if inputs is None else Vectors(
                    inputs, other.run_integers(inputs), other.hash)


def stimuli() -> str:
    """The hash of the files of `STIMULI`, and of how many networks there are."""
    root, whole = Path(benchmarks.__file__).parent.parent, hashlib.sha256(f"{[each[1:] for each in OTHERS]}".encode())
    for path in sorted(each for name in STIMULI for each in (root / name, *(root / name).glob("*.py"))):
        whole.update(path.read_bytes() if path.is_file() else b"")
    return whole.hexdigest()[:16]
