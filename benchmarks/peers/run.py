"""Each generator on each model, and the table for people and for docs/results.md."""
import datetime
import json
import os
import platform
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers import counting, ours
from benchmarks.peers.environments import PEERS, ask
from benchmarks.peers.shapes import MODELS, timed
from circulant.sim.files.writing import atomic_bytes
from circulant.sim.refusal import Refusal, ToolError

__all__ = ["KEPT", "OURS", "document", "measure", "table", "write"]

KEPT = Path("docs/measured/peers.json")
"""The figures of which the document is made: the last ones of each generator on each model."""

OURS = {"circulant": 1, "circulant-k8": 8}
"""Our rows, and their block sizes."""

FAULTS = "faults"
"""The name under which hls4ml's script converts models that it gets wrong without a message."""

BEGIN, END = "<!-- peers -->", "<!-- end of peers -->"
"""Marks of the part of a document that `write` replaces."""

COLUMNS = ("generator", "convert, s", "emulator built, s", "samples/s", "error", "lines", "multipliers", "memory bits",
           "simulation: build + run, s", "words, mismatches", "cycles a sample")


def measure(names: Sequence[str] = (), models: Sequence[str] = (), *, note: Callable[[str], None] = lambda text: None
            ) -> dict[str, Any]:
    """Figures of each generator on each model, in CPU seconds; a reason stands in place of what cannot be had.

    Parameters:
        names: of `PEERS` and `OURS`; all by default.
        models: of `MODELS`; all by default, and then also the models that hls4ml gets wrong.
        note: called with a line before each.
    """
    found: dict[str, dict[str, Any]] = {}
    for model in models or MODELS:
        for name in names or (*OURS, *PEERS):
            note(f"{name}: {model}")
            found.setdefault(model, {})[name] = _figures(name, model)
    wrong = {} if models or (names and "hls4ml" not in names) else _ask("hls4ml", FAULTS).get("faults", {})
    figures = {"benchmark": "peers", "models": found, "faults": wrong,
               "machine": {"system": platform.platform(), "cores": os.cpu_count()}}
    return figures | {"table": table(figures)}


def _figures(name: str, model: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="circulant-peers-") as temporary:
        folder = Path(temporary)
        found = ours.measure(model, folder, block=OURS[name]) if name in OURS else ask(PEERS[name], model, folder)
        sources, images, top = (found.pop(key, default) for key, default in
                                (("sources", []), ("images", []), ("top", None)))
        if sources:
            found["lines"] = counting.lines(sources)
        if top:
            try:
                counted, found["synthesis_s"] = timed(lambda: counting.cells(sources, top, images))
            except (Refusal, ToolError) as error:
                found["reason"] = " ".join(str(error).split())[:200]
            else:
                found |= counted
    return {"date": f"{datetime.date.today()}"} | {
        key: round(value, 6) if isinstance(value, float) else value for key, value in found.items()}


def _ask(name: str, model: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="circulant-peers-") as temporary:
        return ask(PEERS[name], model, Path(temporary))


def table(figures: dict[str, Any]) -> dict[str, str]:
    """A row for each generator and model: the most telling figures, or the reason why there are none."""
    rows = {}
    for model, found in figures["models"].items():
        for name, each in found.items():
            rows[f"{model}, {_title(name)}"] = (
                f"{each['samples_per_s']:,.0f} samples/s, error {each.get('error', float('nan')):.2g}; "
                f"{_verified(each) or each.get('reason', 'no Verilog')}"
                if "samples_per_s" in each else each["reason"])
    return rows | {f"hls4ml, {name}": said for name, said in figures["faults"].items()}


def _title(name: str) -> str:
    if name in OURS:
        return "circulant, dense" if OURS[name] == 1 else f"circulant, k = {OURS[name]}"
    return PEERS[name].name


def _verified(each: dict[str, Any]) -> str:
    return f"{each['words']:,}, {each['mismatches']:,}" if "words" in each else ""


def document(figures: dict[str, Any]) -> str:
    """The figures as Markdown: a table for each model, reasons below it."""
    dates = sorted({each["date"] for found in figures["models"].values() for each in found.values()})
    parts = [f"Measured on {' and '.join(dates)} by `python -m benchmarks peers --write docs/results-peers.md`, in CPU "
             "seconds."]
    for model, found in figures["models"].items():
        parts += [f"**{MODELS[model][2]}**", "\n".join(_rows(found))]
        if reasons := [f"- {_title(name)}: {re.sub(r'[|`]', '', each['reason'])}" for name, each in found.items()
                       if each.get("reason")]:
            parts.append("\n".join(reasons))
    if figures["faults"]:
        parts += ["**Converted without a message by hls4ml**",
                  "\n".join(["| model | outcome |", "|---|---|",
                             *(f"| {name} | {said} |" for name, said in figures["faults"].items())])]
    parts += ["**What each does best here**", "\n".join(f"- {peer.name}: {peer.strength}." for peer in PEERS.values())]
    return "\n\n".join(parts)


def _rows(found: dict[str, dict[str, Any]]) -> list[str]:
    lines = [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
    for name, each in found.items():
        if "samples_per_s" not in each:
            continue
        built = f"{each['simulation_build_s']:.1f} + {each['simulation_s']:.2f}" if "simulation_s" in each else ""
        values = [_title(name), f"{each['convert_s'] + each.get('generate_s', 0):.2f}", f"{each['build_s']:.1f}",
                  f"{each['samples_per_s']:,.0f}", f"{each['error']:.2g}" if "error" in each else "",
                  *(f"{each[key]:,}" if key in each else "" for key in ("lines", "multipliers", "memory_bits")),
                  built, _verified(each), f"{each['cycles']:,.0f}" if "cycles" in each else ""]
        lines.append(f"| {' | '.join(values)} |")
    return lines


def write(path: Path, figures: dict[str, Any], kept: Path = KEPT) -> None:
    """Put figures in place of those kept, and all of them into the document between the marks.

    Raises:
        Refusal: when it lacks the marks.
    """
    text = path.read_text("utf-8")
    if BEGIN not in text or END not in text:
        raise Refusal(f"{path} must hold the marks {BEGIN} and {END}, but it lacks them; add them where the tables go")
    if kept.exists():
        before = json.loads(kept.read_text("utf-8"))
        models = {model: before["models"].get(model, {}) | figures["models"].get(model, {})
                  for model in MODELS if model in before["models"] or model in figures["models"]}
        figures = figures | {"models": models, "faults": figures["faults"] or before["faults"]}
        figures |= {"table": table(figures)}
    atomic_bytes(kept, (json.dumps(figures, indent=1, ensure_ascii=False) + "\n").encode())
    head, tail = text.partition(BEGIN)[0], text.partition(END)[2]
    atomic_bytes(path, f"{head}{BEGIN}\n\n{document(figures)}\n\n{END}{tail}".encode())
