"""Commands that measure the project itself: faults found, words compared, shapes proved, lines and words."""
from dataclasses import asdict
from typing import Any

import click

from benchmarks import designs, fuzz, mutation, proofs, size, soak, users
from benchmarks.commands.group import as_json, main, note, show
from benchmarks.formal import shapes


@main.command("fuzz", epilog="Example: python -m benchmarks fuzz --json -")
@click.option("--networks", default=200, show_default=True, help="Random networks, golden against C.")
@click.option("--hardware", default=40, show_default=True, help="Of them, against Verilog in both simulators.")
@click.option("--shared", default=200, show_default=True,
              help="Others on shared arrays, planned against measured cycles; outcomes are kept in build/paces.jsonl.")
@click.option("--graphs", default=20, show_default=True,
              help="Others whose branches cross, with several inputs and outputs, under random stalls on each port.")
@click.option("--files", default=300, show_default=True, help="Damaged files.")
@click.option("--first", default=0, show_default=True, help="First seed.")
@as_json
def _fuzz(path: str | None, **options: Any) -> None:
    """Random networks, golden against C and Verilog, their plans against measured cycles, and damaged files: exact or
    refused, and nothing else."""
    figures = fuzz.measure(**options, note=note)
    show(figures, path)
    if figures["failed"] or figures["paces"]["faults"] or figures["tracebacks"] or figures["hangs"]:
        raise SystemExit(1)


@main.command("mutation", epilog="Example: python -m benchmarks mutation --design digits-gru --count 300 --json -")
@click.option("--design", "names", multiple=True, type=click.Choice(mutation.DESIGNS), default=mutation.DESIGNS,
              show_default=True, help="May be repeated.")
@click.option("--count", default=300, show_default=True, help="Mutants of each design.")
@click.option("--seed", default=0, show_default=True, help="Of their choice.")
@click.option("--prove/--no-prove", default=True, show_default=True,
              help="Try proofs about survivors; kept ones count anyway.")
@click.option("--offered", default=0, show_default=True, help="Mutants that were caught, and must not be proved.")
@as_json
def _mutation(path: str | None, names: tuple[str, ...], **options: Any) -> None:
    """Faults planted in generated Verilog, and how many of them the checker of `circulant simulate` finds."""
    figures = mutation.measure(names, **options, note=note)
    show(figures, path)
    if any(row["offered_and_proved"] for row in figures["designs"].values()):
        raise SystemExit(1)


@main.command("shapes", epilog="Example: python -m benchmarks shapes --json docs/measured/stream-shapes.json")
@click.option("--design", "names", multiple=True, type=click.Choice(list(designs.DESIGNS)),
              default=tuple(designs.DESIGNS), show_default=True, help="May be repeated.")
@as_json
def _shapes(path: str | None, names: tuple[str, ...]) -> None:
    """Shapes of the stream units in designs, each of which `make prove` proves."""
    show(shapes.measure(names, note=note), path)


@main.command("soak", epilog="Example: python -m benchmarks soak --design digits-gru --words 10000 --json -")
@click.option("--design", "names", multiple=True, type=click.Choice(list(soak.SOAKED)), default=tuple(soak.SOAKED),
              show_default=True, help="May be repeated.")
@click.option("--words", default=1_000_000, show_default=True, help="Of all designs together.")
@click.option("--seed", default=1, show_default=True, help="Of samples, stalls and resets.")
@click.option("--seconds", default=float("inf"), help="After which no further round begins.  [default: no limit]")
@as_json
def _soak(path: str | None, names: tuple[str, ...], **options: Any) -> None:
    """Designs under Verilator with random stalls and resets, each word against the golden model."""
    figures = soak.measure(names, **options, note=note)
    show(figures, path)
    if figures["mismatches"]:
        raise SystemExit(1)


@main.command("proofs", epilog="Example: python -m benchmarks proofs --json -")
@as_json
def _proofs(path: str | None) -> None:
    """Proofs of stream units in each shape, and of memories that are written within their words; goes on where it
    stopped."""
    show(proofs.measure(note), path)


@main.command("size", epilog="Example: python -m benchmarks size --json -")
@as_json
def _size(path: str | None) -> None:
    """Lines of Python in each folder, and words of documentation."""
    show(size.measure(), path)


@main.command("users", epilog="Example: python -m benchmarks users --user spotter --json -")
@click.option("--user", "names", multiple=True, type=click.Choice(list(users.USERS)), default=tuple(users.USERS),
              show_default=True, help="May be repeated.")
@as_json
def _users(path: str | None, names: tuple[str, ...]) -> None:
    """Users in a fresh environment with the wheel alone, from an empty folder: minutes to each milestone."""
    figures = users.measure(names, note)
    show(asdict(figures), path)
    if figures.failed:
        raise click.exceptions.Exit(1)
