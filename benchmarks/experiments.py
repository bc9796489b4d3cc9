"""The rows of docs/results.md: those of shipped experiments, each trained with several seeds, and what to reach."""
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Self

__all__ = ["EXPERIMENTS", "FOLDER", "TITLES", "Entry", "Row", "Target", "campaign", "rows"]

FOLDER = Path("runs/results")

CAMPAIGN = Path(__file__).with_name("campaign.toml")

SHIPPED = tomllib.loads(Path(__file__).with_name("rows.toml").read_text("utf-8"))
"""By experiment its rows by their labels, as that file explains them."""

SETS: Mapping[str, list[str]] = SHIPPED.pop("sets")
"""Settings by the names that rows give them."""

TITLES: Mapping[str, str] = {experiment: table.pop("title") for experiment, table in SHIPPED.items()}
EXPERIMENTS = tuple(TITLES)


@dataclass(frozen=True)
class Target:
    """The goal of a row: a score itself, a loss against the dense model of the same budget, or both.

    Parameters:
        score: an accuracy of at least this, or an error rate below it.
        loss: at most so much is lost, in the metric's own unit.
        fewer: by this factor fewer weights in the Linear layers that are circulant.
        behind: at most so much is lost against the dense model that it learns from.
    """

    score: float | None = None
    loss: float | None = None
    fewer: float | None = None
    behind: float | None = None


@dataclass(frozen=True)
class Row:
    """One model of one experiment.

    Parameters:
        label: names the row, and with the seed its run folder.
        sets: keys of the experiment that it changes.
        base: label of the row whose dense model it starts from, with the same seed; empty: it trains its own.
        against: label of the row with whose score its own is compared.
        target: what it has to reach.
    """

    experiment: str
    label: str
    sets: tuple[str, ...] = ()
    base: str = "start"
    against: str = "start"
    target: Target = Target()

    @classmethod
    def read(cls, experiment: str, label: str, given: Mapping[str, Any], sets: Mapping[str, list[str]]) -> Self:
        """A row as a file has it, whose ``sets`` are names of settings."""
        named = chain.from_iterable(sets[name] for name in given.get("sets", ()))
        return cls(experiment, label, (*named, *given.get("settings", ())), base=given.get("base", "start"),
                   against=given.get("against", "start"),
                   target=Target(**{name: given.get(name) for name in Target.__dataclass_fields__}))

    def folder(self, seed: int, below: Path = FOLDER) -> Path:
        """Its run folder."""
        return below / self.experiment / f"{self.label}-s{seed}"

    def arguments(self, seed: int, below: Path = FOLDER) -> list[str]:
        """The arguments of ``circulant`` that train it."""
        sets = [*self.sets, f"training.seed={seed}"]
        if self.base:
            sets.append(f"training.dense={below / self.experiment / f'{self.base}-s{seed}'}")
        return ["train", self.experiment, "--out", str(self.folder(seed, below)),
                *(word for each in sets for word in ("--set", each))]


def rows(experiment: str) -> Iterator[Row]:
    """The rows of an experiment, that of the dense baseline, which the others start from, first."""
    yield from (Row.read(experiment, label, given, SETS) for label, given in SHIPPED[experiment].items())
    yield from (entry.row for entry in campaign() if entry.own and entry.row.experiment == experiment)


class Entry(NamedTuple):
    """A row of a campaign.

    Members:
        why: what it is to find out.
        own: whether the file says its settings, or its label those of a shipped row.
    """

    row: Row
    seeds: tuple[int, ...]
    why: str
    own: bool


@cache
def campaign(path: Path = CAMPAIGN) -> tuple[Entry, ...]:
    """The rows of a campaign, in its order."""
    document = tomllib.loads(path.read_text("utf-8"))
    entries = []
    for given in document["row"]:
        experiment, label, own = given["experiment"], given["label"], "base" in given
        row = Row.read(experiment, label, given, document.get("sets", {})) if own else Row.read(
            experiment, label, SHIPPED[experiment][label], SETS)
        entries.append(Entry(row, tuple(given["seeds"]), given["why"], own))
    return tuple(entries)
