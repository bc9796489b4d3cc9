"""Figures of a campaign: the metric at each rate, the most sensitive memories and bits; as a table and a picture."""
import csv
import io
from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

from matplotlib.figure import Figure

from circulant.faults import sampling
from circulant.faults.campaign import Flipped, Scored
from circulant.report.plots import COLORS, png, style
from circulant.sim import metrics
from circulant.sim.golden.faults import FaultMemory

__all__ = ["Summary", "comma_separated", "picture", "registers", "summary"]


class Spread(TypedDict):
    """The metric over some draws: mean with its interval, least and greatest; and what they have in common."""

    draws: int
    mean: float
    low: float
    high: float
    least: float
    most: float
    rate: NotRequired[float]
    memory: NotRequired[str]
    bit: NotRequired[str]


class Share(TypedDict):
    """A share of draws with its interval."""

    share: float
    low: float
    high: float


class Worst(TypedDict):
    """A bit whose flip costs most, and the metric with it."""

    memory: str
    word: int
    bit: int
    score: float


class Single(TypedDict):
    """Draws of one fault: the metric; the shares that change an output of the test set, and the metric."""

    all: Spread
    changed: Share
    lost: Share
    memories: list[Spread]
    bits: list[Spread]
    worst: list[Worst]


class Summary(TypedDict):
    """The figures of a campaign; ``score`` is the metric without faults."""

    metric: str
    score: float
    confidence: float
    rates: list[Spread]
    single: NotRequired[Single]


LISTED = 10
"""The most sensitive bits that are listed."""


def summary(draws: Sequence[Scored], memories: Mapping[str, FaultMemory], metric: str, confidence: float) -> Summary:
    """The figures of a campaign, whose first draw has no fault."""
    true = draws[0].score
    singles = [(each, *each.where) for each in draws if each.where is not None]
    rates = sorted({each.draw.rate for each in draws[1:] if each.draw.rate is not None})
    found: Summary = {"metric": metric, "score": true, "confidence": confidence, "rates": [
        {**_spread([each for each in draws[1:] if each.draw.rate == rate], confidence), "rate": rate}
        for rate in rates]}
    if singles:
        by_memory: dict[str, list[Scored]] = {}
        by_bit: dict[tuple[str, int], list[Scored]] = {}
        for each, name, _, bit in singles:
            by_memory.setdefault(name, []).append(each)
            by_bit.setdefault((name.rpartition(".")[2], bit % memories[name].width), []).append(each)
        alone, worst = [each for each, *_ in singles], sorted(singles, key=lambda each: -abs(each[0].score - true))
        found["single"] = {
            "all": _spread(alone, confidence),
            "changed": _share([each.wrong > 0 for each in alone], confidence),
            "lost": _share([each.score != true for each in alone], confidence),
            "memories": [{**_spread(some, confidence), "memory": name} for name, some in sorted(by_memory.items())],
            "bits": [{**_spread(some, confidence), "bit": f"{array} bit {bit}"}
                     for (array, bit), some in sorted(by_bit.items())],
            "worst": [{"memory": name, "word": word, "bit": bit, "score": each.score}
                      for each, name, word, bit in worst[:LISTED]]}
    return found


def _spread(some: Sequence[Scored], confidence: float) -> Spread:
    scores = [each.score for each in some]
    low, high = sampling.mean(scores, confidence)
    return {"draws": len(some), "mean": sum(scores) / len(scores), "low": low, "high": high,
            "least": min(scores), "most": max(scores)}


def _share(some: Sequence[bool], confidence: float) -> Share:
    low, high = sampling.share(sum(some), len(some), confidence)
    return {"share": sum(some) / len(some), "low": low, "high": high}


def registers(found: Flipped, confidence: float) -> dict[str, str]:
    """Sentences on flips of registers: how they end, by unit, and what control has to do with it."""
    wrong, hangs = found.ends["wrong"], found.ends["hang"]
    low, high = sampling.share(wrong, found.runs, confidence)
    said = {f"one flipped bit of {found.bits:,} bits of registers":
            ", ".join(f"{count} {end}" for end, count in found.ends.items())
            + f"; wrong {wrong / found.runs:.1%} ({low:.1%} to {high:.1%})"}
    if wrong:
        said["wrong outputs by unit"] = ", ".join(
            f"{unit} {ends['wrong'] / wrong:.0%} ({ends['wrong']} of {sum(ends.values())})" for unit, ends in sorted(
                found.units.items(), key=lambda item: -item[1]["wrong"]))
        low, high = sampling.share(found.control["wrong"], wrong, confidence)
        said[f"wrong outputs by control, {found.control_bits / found.bits:.1%} of the bits"] = (
            f"{found.control['wrong'] / wrong:.1%} ({low:.1%} to {high:.1%}), {found.control['wrong']} of {wrong}; "
            f"hangs {found.control['hang']} of {hangs}")
    return said


def comma_separated(draws: Sequence[Scored]) -> str:
    """All draws, a line each."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["rate", "seed", "kind", "faults", "score", "wrong_samples", "memory", "word", "bit"])
    rows.writerows(["one" if each.draw.rate is None else each.draw.rate, each.draw.seed, each.draw.kind, each.faults,
                    each.score, each.wrong, *(each.where or ("", "", ""))] for each in draws)
    return text.getvalue()


def picture(found: Summary, draws: Sequence[Scored]) -> bytes:
    """PNG data: the metric over the rate, each draw a dot, and the mean loss by bit of a number."""
    singles = found.get("single")
    figure = Figure(figsize=(10 if singles else 5.5, 3.4), layout="constrained")
    axes = figure.subplots(1, 2 if singles else 1, squeeze=False)[0]
    percent = 100 if found["metric"] in ("accuracy", "phone_error_rate") else 1
    words, rows = metrics.words(found["metric"]), found["rates"]
    unit = f"{words}, %" if percent > 1 else words
    if rows:
        rated = [each for each in draws[1:] if each.draw.rate]
        axes[0].plot([each.draw.rate for each in rated], [percent * each.score for each in rated], ".",
                     color=COLORS["dense"], alpha=0.25, markersize=4, label="a draw")
        shown = [row for row in rows if row["rate"] > 0]
        axes[0].plot([row["rate"] for row in shown], [percent * row["mean"] for row in shown], "-o",
                     color=COLORS["admm"], markersize=4, label=f"mean, {found['confidence']:.0%} interval")
        axes[0].fill_between([row["rate"] for row in shown], [percent * row["low"] for row in shown],
                             [percent * row["high"] for row in shown], color=COLORS["admm"], alpha=0.3, linewidth=0)
        axes[0].axhline(percent * found["score"], color=COLORS["retrain"], linewidth=1, label="without faults")
        axes[0].set_xscale("log")
        axes[0].set_xlabel("bit error rate", fontsize=8)
        axes[0].set_ylabel(unit, fontsize=8)
        axes[0].legend(fontsize=7, frameon=False)
    style(axes[0], "Draws at a bit error rate", grid="both")
    if singles:
        bits = singles["bits"]
        axes[1].barh([row["bit"] for row in bits], [percent * (found["score"] - row["least"]) for row in bits],
                     color=COLORS["admm"], alpha=0.35, label="worst fault")
        axes[1].barh([row["bit"] for row in bits], [percent * (found["score"] - row["mean"]) for row in bits],
                     color=COLORS["dense"], label="mean")
        axes[1].set_xlabel(f"loss of {unit}", fontsize=8)
        axes[1].legend(fontsize=7, frameon=False)
        style(axes[1], "One fault, by the bit of a number that it is in", grid="x")
    return png(figure)
