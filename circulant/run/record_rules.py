"""Rules for the records of a run: what later steps and the report read of them."""
import math
from collections.abc import Mapping
from typing import Any

from circulant.run.outcomes import CLASSES, PAIRS
from circulant.sim.design import CYCLES, RESOURCES
from circulant.sim.files.schema import (
    SHA,
    Anything,
    Int,
    Later,
    Listing,
    Mapped,
    Null,
    Number,
    Rule,
    Table,
    Text,
    Where,
)
from circulant.sim.passes.rules import COUNT, FORMAT, NAME

__all__ = ["rule_of"]

_LATENCIES = ("latency_spaced", "latency_contiguous")

_SIZE = Int(1, 1 << 62)
_TIME = Number(0)

UNITS = ("array", "pointwise", "second vector", "output")
"""The units of `circulant.report.gantt`, which draws them and is slow to import."""

TURNS = 1000
"""Periods that the chart of a step may go over."""


def _few_periods(chart: Mapping[str, Any]) -> bool:
    ends = [end for spans in chart["rows"].values() for span in spans for end in span]
    return (bool(ends) and max(ends) - min(ends) <= TURNS * chart.get("period", math.inf)
            and all(unit.partition(":")[0] in UNITS for unit in chart["rows"]))


_CHART = Where(Table({"rows": Mapped(Listing(Listing(Number(), 2, 2), 1))}, {"period": Number(1e-9)}, open=True),
               _few_periods, f"spans of the units of an array, over {TURNS} periods at the most")
_LAYERS = Listing(Later(lambda: _LAYER))
_LAYER: Rule = Where(
    Table({"name": NAME, "kind": Text(100), "cycles": CYCLES, "floor": CYCLES},
          {**dict.fromkeys(("rows", "columns", "fold", "chains", "elements", "multipliers"), COUNT), "limit": Text(),
           "per": Text(100), "chart": _CHART, "forward": Later(lambda: _LAYER), "backward": Later(lambda: _LAYER),
           "body": _LAYERS, "shortcut": _LAYERS}, open=True),
    lambda layer: ("rows" in layer) == ("columns" in layer) and ("body" in layer) == ("shortcut" in layer)
    and ("chart" not in layer or "limit" in layer), "an object with rows and columns, body and shortcut, or neither")

_WORK = Where(Table({"per_step": COUNT, "per_sequence": COUNT}), lambda work: any(work.values()),
              "multiplications of a step and of a sequence, not both none")
_FIRST = Table(dict.fromkeys(("sequence", "step", "word", "expected", "got"), Int(-1 << 63, 1 << 63)), open=True)
_COVERAGE = Where(
    Table({"reached": Mapped(COUNT), "points": Mapped(COUNT)}, open=True),
    lambda found: found["reached"].keys() == found["points"].keys(), "points reached of as many kinds as there are")
_CHIPS = Table({**dict.fromkeys(("words_compared", "mismatches"), COUNT), "latencies": Listing(COUNT, 1),
                "rough_cycles_per_step": CYCLES}, open=True)
_VERIFICATION = Where(
    Table({**dict.fromkeys(("sequences", "words", "words_compared", "mismatches"), COUNT),
           **dict.fromkeys(("cycles_per_step", "cycles_per_sequence", *_LATENCIES), CYCLES),
           "first": Null(_FIRST), "simulator": Text(200)},
          {"drawn": COUNT, "coverage": _COVERAGE, "chips": _CHIPS}, open=True),
    lambda found: (found["first"] is None) == (not found["mismatches"]),
    "an object with the first mismatch, where there is one")

_RANGE = Where(
    Table({"name": NAME, "format": FORMAT, "lo": Number(), "hi": Number(), "worst": Number(), "count": _SIZE,
           "ends": COUNT, "bits": Listing(COUNT), "sqnr_db": Null(Number())}, open=True),
    lambda each: len(each["bits"]) == each["format"]["width"], "an object with a count for each bit of its format")
_WIDTH = Table({"name": NAME, "start": COUNT, "picked": COUNT, "noise": Null(Number())}, open=True)
_PICKED = Table({"pick_on": Text(100), "pick_by": Text(100), "budget": Number(), "lost": Number(), "cost": Number(),
                 "score_start": Number(), "score": Number(), "weight_bits_start": _SIZE, "weight_bits": COUNT,
                 "widths": Listing(_WIDTH)}, open=True)

_OUTCOME = Where(
    Table({}, {"names": Listing(Text(100), 1, CLASSES), "confusion": Listing(Listing(COUNT), 1, CLASSES),
               **dict.fromkeys(("target", "output"), Listing(Number(), 1, PAIRS)),
               **dict.fromkeys(("rmse", "worst"), Number(0))}, open=True),
    lambda found: _square(found) and _paired(found),
    "a square of counts with a name for each class, or outputs beside as many targets with their error")

_MATRIX = Table(dict.fromkeys(("groups", "rows", "columns", "block_size"), _SIZE), open=True)


def _square(found: Mapping[str, Any]) -> bool:
    counts, names = found.get("confusion", ()), found.get("names", ())
    return all(len(row) == len(names) for row in counts) and len(counts) == len(names)


def _paired(found: Mapping[str, Any]) -> bool:
    there = [name in found for name in ("target", "output", "rmse", "worst")]
    return len(found.get("target", ())) == len(found.get("output", ())) and any(there) == all(there)


def rule_of(step: str, body: Mapping[str, Any]) -> Rule:
    """The rule of a step's record.

    Parameters:
        body: of it, which names the metric of its scores, and says whether widths were picked.
    """
    members: dict[str, Rule] = {"experiment": Mapped(Mapped(Anything())), "after": Null(SHA)}
    optional: dict[str, Rule] = {}
    if step in ("train", "quantize"):
        metric = body.get("metric")
        members |= {"metric": Text(100), "seconds": _TIME}
        if isinstance(metric, str) and metric not in ("hashes", "matrices", "history", "picking", "ranges", *members):
            members[metric] = Mapped(Number())
        if step == "train":
            epoch = Table({"phase": Text(100), "loss": Number()},
                          dict.fromkeys(("primal", "dual", str(metric)), Number()), open=True)
            members |= {"hashes": Table({"model": SHA}, open=True), "matrices": Mapped(_MATRIX),
                        "history": Listing(epoch)}
        else:
            members["hashes"] = Table({"network": SHA, "vectors": SHA}, open=True)
            optional = {"ranges": Listing(_RANGE), "picking": _PICKED if body.get("picking") else Table({}),
                        "finetuning": Mapped(Anything()), "outcome": _OUTCOME}
    elif step == "generate":
        members |= {"seconds": _TIME, "hashes": Table({"network": SHA, "design": SHA}, open=True),
                    "hardware": Table({"multipliers": _SIZE, "memory_bits": COUNT, "multiplications": _WORK},
                                      {"layers": _LAYERS, "resources": RESOURCES, "dsp_blocks": COUNT,
                                       "dsp_packing": Text(), **dict.fromkeys(_LATENCIES, Null(COUNT))}, open=True)}
    elif step == "simulate":
        members |= {"seconds": _TIME, "hashes": Table({"design": SHA, "vectors": SHA}, open=True),
                    "verification": _VERIFICATION}
    return Table(members, optional, open=True)
