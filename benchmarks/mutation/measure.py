"""Mutants planted and caught, design by design; survivors proved equivalent, or listed with what is known of them."""
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.designs import DESIGNS as SHAPES
from benchmarks.designs import Shape, network
from benchmarks.mutation.mutants import Mutant, planted, schemata
from benchmarks.mutation.play import Checker, Images, Verdict
from benchmarks.mutation.prover import available
from benchmarks.mutation.subject import Flipped, Subject, stimuli
from benchmarks.resume import MUTANTS, Record
from circulant.sim.golden.network import Network

__all__ = ["DESIGNS", "measure", "of_design"]

DESIGNS = ("digits-gru", "interleaved", "lenet5", "reloadable")
"""Designs that are measured: a GRU, an LSTM with projection, a CNN, and one with a configuration port."""

MEMORY = 0.06
"""Share of the mutants that are bits of memory images."""


def measure(names: tuple[str, ...], *, count: int, seed: int = 0, prove: bool = True, offered: int = 0,
            note: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """Mutants of some designs: figures of each, and a table.

    What became of each mutant is kept in `MUTANTS`: a run that is interrupted goes on where it stopped.

    Parameters:
        count: mutants of each design.
        prove: whether survivors are to be proved equivalent; if not, the proofs that are kept count.
        offered: mutants of each design that were caught and are given to the prover all the same, which checks it: to
            prove one of them is a fault.
        note: told each survivor.
    """
    found = {}
    for name in names:
        note(name)
        made = network(name)
        found[name] = of_design(made, SHAPES[name], count=count, seed=seed, prove=prove, offered=offered,
                                note=note, folder=MUTANTS)
    table = {name: f"{row['planted']} planted, {row['caught']} caught, {row['equivalent']} proved equivalent, "
                   f"{len(row['survivors'])} others; {row['offered']} caught ones offered to the prover, "
                   f"{len(row['offered_and_proved'])} proved; {row['seconds']:.0f} s" for name, row in found.items()}
    return {"benchmark": "mutation", "table": table, "designs": found}


def of_design(made: Network, shape: Shape, *, count: int, seed: int, prove: bool, offered: int = 0,
              note: Callable[[str], None] = lambda text: None, folder: Path | None = None) -> dict[str, Any]:
    """The figures of one design.

    Parameters:
        shape: its hardware options.
        folder: of the record; None keeps none.
    """
    start, rng = time.perf_counter(), np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(prefix="circulant-mutation-") as temporary:
        subject = Subject(made, shape, Path(temporary), seed)
        in_memory = round(count * MEMORY)
        mutants, whole = planted(subject.verilog, subject.manifest.top, count - in_memory, seed)
        flipped = [Flipped.drawn(subject.manifest, rng) for _ in range(in_memory)]
        text = schemata(whole)
        record = Record(folder / f"{made.name}-{subject.hash(text)}.jsonl" if folder else None, Verdict)
        played = stimuli()
        with closing(_Lazy(partial(subject.checker, text))) as lazy:
            places: list[tuple[Mutant | Flipped, int, Images]] = [
                *((each, each.number, {}) for each in mutants),
                *((each, 0, {each.name: each.text}) for each in flipped)]
            verdicts = []
            for n, (each, number, images) in enumerate(places, 1):
                name = f"{n}: {each}"
                verdicts.append(record.get(name, partial(lazy.verdict, number, images, record[name], played),
                                           lambda found: bool(found.caught) or found.stimuli == played))
                if not verdicts[-1].caught:
                    note(f"survived: {each}")
        by = Counter(each.caught for each in verdicts if each.caught)
        rows = list(zip([each for each, _, _ in places], verdicts, strict=True))
        left = [each for each, verdict in rows if not verdict.caught]
        proofs = subject.proofs(left, whole, folder, note, tried=prove and available())
        found = [each for each, verdict in rows if verdict.caught]
        some = [found[n] for n in np.random.default_rng(seed).permutation(len(found))[:offered]] if available() else []
        wrong = [name for name, said in subject.proofs(some, whole, folder, note).items() if said["proved"]]
    how = Counter(said["proved"].split(",")[0] for each in left if (said := proofs[str(each)])["proved"])
    survivors = [{"mutant": str(each), "reason": proofs[str(each)]["why"]}
                 for each in left if not proofs[str(each)]["proved"]]
    return {"planted": len(rows), "caught": sum(by.values()), "equivalent": len(left) - len(survivors),
            "caught_by": dict(by), "proved_by": dict(how),
            "caught_of": dict(Counter(_kind(each) for each, verdict in rows if verdict.caught)),
            "planted_of": dict(Counter(_kind(each) for each, _ in rows)), "survivors": survivors,
            "offered": len(some), "offered_and_proved": wrong, "seconds": time.perf_counter() - start}


class _Lazy:
    """A checker that is made when it is needed first."""

    def __init__(self, make: Callable[[], Checker]) -> None:
        self._make = make

    @cached_property
    def made(self) -> Checker:
        return self._make()

    def verdict(self, number: int, images: Images, before: Verdict | None, stimuli: str) -> Verdict:
        survived = Verdict("", survived=tuple(before.survived)) if before else Verdict("")
        return replace(self.made.verdict(number, images, survived), stimuli=stimuli)

    def close(self) -> None:
        if "made" in vars(self):
            self.made.close()


def _kind(each: Mutant | Flipped) -> str:
    return each.kind if isinstance(each, Mutant) else "memory"
