"""The command ``circulant faults``: what wrong bits in the memories of a run cost."""
import base64
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from circulant.arguments import JOBS, JSON, say
from circulant.completion import runs as run_folders
from circulant.exits import WRONG
from circulant.experiment import FILE, load
from circulant.extras import TRAINING, extras
from circulant.progress import Bars
from circulant.run.run_folder import Run, require
from circulant.sim import artifact, metrics
from circulant.sim.arith.codes import PROTECTIONS, Code
from circulant.sim.files.writing import atomic_bytes, atomic_text
from circulant.sim.golden.faults import KINDS, check_rate, chosen
from circulant.sim.refusal import Refusal

__all__ = ["faults"]

KIND, VERSION = "circulant-faults", 1

RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)


@click.command("faults", short_help="Measure what wrong bits in memories cost",
               epilog="docs/faults.md describes the method, its margins, and what it does not cover.")
@click.argument("folder", metavar="RUN", shell_complete=run_folders, type=click.Path(path_type=Path))
@click.option("--rate", "rates", type=float, multiple=True, metavar="RATE",
              help="Bit error rate, from 0 to 1; may be repeated.  [default: 0.0001, 0.0003, 0.001, 0.003, 0.01]")
@click.option("--draws", type=click.IntRange(0), default=60, show_default=True, help="Draws at each rate.")
@click.option("--memory", "memories", multiple=True, metavar="NAME",
              help="Memory with faults, or part of its name, such as gru, recurrent_product or bias; may be repeated.  "
                   "[default: all weights]")
@click.option("--kind", type=click.Choice(KINDS), default="flip", show_default=True, help="Kind of the faults.")
@click.option("--protection", type=click.Choice(PROTECTIONS), default="none", show_default=True,
              help="Check bits of the memories, in which bits are wrong, too.")
@click.option("--margin", type=float, default=0.05, show_default=True,
              help="Margin of error of shares of single faults, from which their number follows.")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Confidence of all intervals.")
@click.option("--simulate", type=click.IntRange(0), default=0, metavar="N",
              help="Also play N draws under Verilator and compare each output word with the golden model's.")
@click.option("--programs", type=click.IntRange(0), default=0, metavar="N",
              help="Also play N runs with one wrong bit in a program or table.")
@click.option("--registers", type=click.IntRange(0), default=0, metavar="N",
              help="Also play N runs with one flipped bit of a register.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the first draw.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Folder of the results.  [default: RUN/faults]")
@JOBS
@JSON
def faults(folder: Path, out: Path | None, *, rates: tuple[float, ...], memories: tuple[str, ...], kind: str,
           protection: str, draws: int, margin: float, confidence: float, simulate: int, programs: int, registers: int,
           seed: int, jobs: int, as_json: bool) -> int:
    """Draw wrong bits in the memories of a quantized run, and measure the metric of the test set with them.

    Draws at bit error rates give the metric with its interval; single faults, as many as margin and confidence ask for,
    the most sensitive memories and bits. Results are kept, so that the same command continues after an interruption.
    It exits with 1 if a circuit differs from the golden model with the same faults.

    \b
    Example:
      circulant faults runs/digits-gru
      circulant faults runs/digits-gru --rate 0.001 --draws 200 --memory gru --simulate 40 --jobs 2
    """
    from circulant.faults import figures, sampling
    from circulant.report.page import render
    from circulant.run.integrity import network_of

    with extras("circulant faults", *TRAINING):
        from circulant.faults.campaign import Plan, campaign, flipped, played
    if not (folder / FILE).is_file():
        raise Refusal(f"A run must be a folder with {FILE} in it, but {folder} is none; name a folder that `circulant "
                      "run` wrote")
    run = Run(folder, load(folder))
    quantized = require(run, "quantize")
    for rate in rates:
        check_rate(rate)
    network = network_of(run, quantized)
    among = chosen(network, memories or None)
    bits = sum(each.words * Code(each.word_bits, protection).bits for each in among.values())
    singles = 0 if Code(1, protection).corrects else sampling.sample_size(bits, margin, confidence)
    plan = Plan(memories, kind, rates=rates or RATES, draws=draws, singles=singles, seed=seed, protection=protection)
    target = out or folder / "faults"
    with Bars(Console(stderr=True)) as bars:
        found = campaign(run, plan, target / "draws.jsonl", jobs=jobs, show=bars)
        simulated = played(run, plan, simulate, programs, bars) if simulate or programs else None
        turned = flipped(run, registers, seed, bars) if registers else None
    figure = figures.summary(found, network.memories, quantized["metric"], confidence)
    drawn = figures.picture(figure, found)
    shown = partial(metrics.shown, figure["metric"])
    atomic_bytes(target / "faults.png", drawn)
    atomic_text(target / "draws.csv", figures.comma_separated(found))
    atomic_text(target / "faults.html", render(
        "faults.html", name=network.name, kind={"flip": "flipped bits"}.get(kind, f"bits {kind}"), bits=bits,
        memories=" and ".join(memories) or "all weights", words=metrics.words(figure["metric"]), shown=shown,
        found=figure, simulated=simulated and simulated._asdict(), turned=turned and turned._asdict(),
        picture=base64.b64encode(drawn).decode(),
        command=f"circulant faults {folder}"))
    result = {"name": network.name, "network": network.hash, "kind": kind, "bits": bits,
                              "memories": sorted(among), **figure,
                              **({} if simulated is None else {"simulated": simulated._asdict()}),
                              **({} if turned is None else {"registers": turned._asdict()})}
    artifact.write_json(target / "faults.json", KIND, VERSION, result)
    said = [(f"rate {row['rate']:g}", row) for row in figure["rates"]]
    said += [("one fault", figure["single"]["all"])] if "single" in figure else []
    words = [f"{what}: {metrics.words(figure['metric'])} {shown(row['mean'])} ({shown(row['low'])} to "
             f"{shown(row['high'])}), from {shown(row['least'])} to {shown(row['most'])} in {row['draws']} draws"
             for what, row in said]
    if simulated is not None:
        words.append(f"{simulated.equal} of {simulated.runs} simulated runs equal the golden model with their faults")
        if simulated.detected:
            words.append(f"{simulated.detected} runs in which memories said that a word was wrong")
        if programs:
            words.append("one wrong bit in a program or table: " + ", ".join(
                f"{count} {end}" for end, count in simulated.ends.items()))
    if turned is not None:
        words += [f"{what}: {text}" for what, text in figures.registers(turned, confidence).items()]
    say(result, as_json, f"without faults: {metrics.words(figure['metric'])} {shown(figure['score'])}", *words,
        str(target / "faults.html"))
    return WRONG if simulated is not None and simulated.equal < simulated.runs else 0
