"""The command ``circulant partition``: the place of each layer on several chips, their designs, all of them played."""
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import click

from circulant.arguments import JSON, RUNS, Number, say
from circulant.completion import device_names
from circulant.exits import WRONG
from circulant.experiment import DEFAULT
from circulant.extras import extras
from circulant.hardware import Chips, Hardware
from circulant.run.divided import check, closing, divide
from circulant.sim.chips import FOLDER
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal
from circulant.sim.vectors import Vectors

__all__ = ["partition"]

SAMPLES = 4
"""Test samples that are played."""

T = TypeVar("T")


@click.command(short_help="Divide a network over several chips",
               epilog="docs/chips.md goes from a run to two chips, and says what is not divided.")
@click.argument("folder", metavar="[RUN]", required=False, type=click.Path(path_type=Path, file_okay=False),
                default=RUNS / DEFAULT)
@click.option("--chips", type=int, default=2, show_default=True, metavar="N", help="How many chips there are.")
@click.option("--device", "parts", multiple=True, metavar="NAME", shell_complete=device_names,
              help="FPGA of all chips, or of each by repetition.")
@click.option("--multipliers", multiple=True, type=int, metavar="N",
              help="Multipliers of all chips, or of each by repetition.  [default: the DSP blocks of the device]")
@click.option("--link", default="64,20", show_default=True, metavar="BITS,LATENCY",
              help="Bits of a word, of which one goes in a cycle, and cycles from pins to pins.")
@click.option("--carrier", default="pins", show_default=True, metavar="NAME",
              help="What links go over: pins, udp (LiteEth), or aurora (a Vivado project, not routed).")
@click.option("--ip", "ips", multiple=True, metavar="ADDRESS",
              help="With udp, of the first chip, or of each by repetition.  [default: 192.168.1.50 for the first]")
@click.option("--mac", "macs", multiple=True, metavar="ADDRESS",
              help="The same of MAC addresses.  [default: 02:00:00:00:00:50 for the first]")
@click.option("--topology", default="all", show_default=True, metavar="NAME",
              help="all, line, ring, or pairs of chips such as 0-1,1-2.")
@click.option("--streams", is_flag=True,
              help="Let independent sequences, or samples, take turns, the network on each chip, where that is better.")
@click.option("--latency", "weight", type=Number(0), default=0.0, show_default=True, metavar="WEIGHT",
              help="Weight of the spaced latency beside that of the period, 1.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Folder of the designs.  [default: chips in the run folder]")
@click.option("--simulate", "simulates", is_flag=True,
              help="Play all chips and their links under Verilator against the one-chip golden model.")
@JSON
def partition(folder: Path, chips: int, parts: tuple[str, ...], multipliers: tuple[int, ...], link: str, carrier: str,
              ips: tuple[str, ...], macs: tuple[str, ...], topology: str, streams: bool, weight: float,
              out: Path | None, simulates: bool, as_json: bool) -> int:
    """Choose the place of each layer, whole, by rows or columns, and write a design for each chip.

    A design has the chip's Verilog and images, and a manifest with its part and the hash of the whole network. The
    folder "system" has all chips with models of their links, and the ports of the one-chip design.

    \b
    Example:
      circulant partition runs/digits-gru --chips 2 --device LFE5U-25F --link 8,4
      circulant partition runs/mine --multipliers 342 --multipliers 684 --simulate
      circulant partition runs/digits-gru --device LFE5U-25F --carrier udp --link 64,160
    """
    if not 1 <= chips <= 64:
        raise Refusal(f"--chips must be from 1 to 64, not {chips}; give how many there are")
    network = Network.load(folder)
    bits, latency = _link(link)
    asked = Chips(count=chips, streams=streams, device=_each(chips, "--device", parts), topology=topology,
                  multipliers=_each(chips, "--multipliers", multipliers), link_bits=bits, link_latency=latency,
                  carrier=carrier, ip=_each(chips, "--ip", ips) or Chips.ip,
                  mac=_each(chips, "--mac", macs) or Chips.mac)
    with extras("circulant partition", "amaranth"):
        designs = divide(network, asked, levels=Hardware().levels, weight=weight)
    where = out or folder / FOLDER
    designs.write(where)
    figures: dict[str, object] = {**designs.partition}
    lines = [*closing(designs.partition), str(where)]
    wrong = 0
    if simulates:
        found = check(where, network, Vectors.load(folder / "vectors.npz").first(SAMPLES))
        wrong = found["mismatches"]
        figures["verification"] = found
        lossy = (f"; with links of {found['latencies'][0]} to {found['latencies'][-1]} cycles that lose words the "
                 f"period is {found['rough_cycles_per_step']:g}") if designs.partition["links"] else ""
        lines.append(f"{found['words_compared']:,} words compared, {wrong} differ; period "
                     f"{found['cycles_per_step']:g}, latency {found['latency_spaced']:g} measured{lossy}")
    say({"folder": str(where), **figures}, as_json, *lines)
    return WRONG if wrong else 0


def _each(chips: int, option: str, given: Sequence[T]) -> tuple[T, ...]:
    """The values of an option.

    Raises:
        Refusal: when there is neither one for all nor one for each.
    """
    if len(given) not in (0, 1, chips):
        raise Refusal(f"{option} must be given once for all chips or once for each of the {chips}, not "
                      f"{len(given)} times; repeat it as often")
    return tuple(given)


def _link(text: str) -> tuple[int, int]:
    """
    Raises:
        Refusal: when the text is not two numbers.
    """
    try:
        bits, latency = map(int, text.split(","))
        return bits, latency
    except ValueError:
        raise Refusal(f"--link must be BITS,LATENCY, such as 64,20, not {text!r}; give both in numbers") from None
