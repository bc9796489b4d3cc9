"""The page of a sweep, ``explore.html``: its pictures, its table, and for each point the experiment that makes it."""
from collections.abc import Iterable, Sequence
from dataclasses import replace

from circulant.experiment import Experiment, brief
from circulant.report.interactive import Page, interactive
from circulant.sweep import sheets
from circulant.sweep.pictures import pictures
from circulant.sweep.rows import Row
from circulant.sweep.space import Space
from circulant.training.settings import CompressionSettings

__all__ = ["experiment_of", "keyed", "page"]

Rows = Sequence[Row]


def page(name: str, rows: Rows, spaces: Sequence[Space], command: str) -> str:
    """The page of the rows of a sweep in these spaces."""
    whole = keyed(rows)
    bases = {space.label: space.experiment for space in spaces}
    texts = {row["key"]: brief(experiment_of(bases[row["experiment"]], row)) for row in whole if not row["reason"]}
    failed = sheets.failures(rows).total()
    beyond = sum(bool(row.get("violates")) for row in rows)
    count = len({row["experiment"] for row in rows})
    said = [f"{len(rows)} points of {count} experiment{'s' * (count > 1)}"
            + (f"; {failed} failed" if failed else "")
            + (f"; {beyond} are beyond a bound of the search" if beyond else ""),
            *_held(bases.values()), *sheets.notes(rows)]
    return interactive(Page(name, f"written by {command}", said, pictures(whole), sheets.tables(rows),
                            experiments=texts))


def keyed(rows: Rows) -> list[Row]:
    """The rows, each with the key of its experiment."""
    return [row | Row(key=f"{row['experiment']} {number}") for number, row in enumerate(rows, start=1)]


def experiment_of(base: Experiment, row: Row) -> Experiment:
    """The experiment of a row, from that of its space."""
    words = str(row["block_size"])
    size: int | dict[str, int] = ({name: int(k) for name, _, k in (part.partition("=") for part in words.split())}
                                  if "=" in words else int(words))
    bits = row["weight_bits"]
    training = replace(base.training, seed=int(row.get("seed", base.training.seed)))
    if training.method == "search":  # Its outcome is the block size.
        training = replace(training, method="admm")
    return replace(
        base, compression=CompressionSettings(size), training=training,
        quantization=replace(base.quantization, activation_bits=row["activation_bits"], weight_bits=bits if isinstance(
            bits, int) else {name: int(each) for name, _, each in (part.partition("=") for part in bits.split())}),
        hardware=replace(base.hardware, multipliers=row["budget"]))


def _held(experiments: Iterable[Experiment]) -> list[str]:
    """On which samples scores were measured."""
    held = [bool(each.data.held_out) for each in experiments]
    if all(held):
        return ["Scores are of training samples that were held out; evaluate the point that you choose on the test set "
                "once."]
    return ["Scores are of the test set: a point that is chosen by them is fitted to it. Hold samples out "
            "(data.held_out) to choose."]
