"""The table of an experiment that says how large the circuit is and what it is made of, on one chip or on several."""
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from circulant.boards.asic.cells.catalogue import known
from circulant.boards.device import devices
from circulant.sim.refusal import nearest
from circulant.sim.registers import BUSES
from circulant.sim.settings import Table, key, read

__all__ = ["Chips", "Hardware"]

V = TypeVar("V")


@dataclass(frozen=True)
class Chips(Table):
    """Several chips that hold a network together. A list has a value for each of them, or one for all."""

    count: int = key(2, "how many", low=1, high=64)
    device: tuple[str, ...] = key((), "FPGA; empty: any")
    multipliers: tuple[int, ...] = key((), "multipliers; empty: the DSP blocks of the device", low=1, high=65536)
    memory: tuple[int, ...] = key((), "block RAMs; empty: those of the device", low=1, high=65536)
    streams: bool = key(False, "independent sequences, or samples, may take turns, the whole network on each chip")
    topology: str = key("all", "all, line, ring, or pairs of chips such as 0-1,1-2")
    link_bits: int = key(64, "bits of a word, of which a link carries one in a cycle", low=1, high=1024)
    link_latency: int = key(20, "cycles of a word from pins to pins", low=0, high=4096)
    link_ns: float = key(0.0, "the same in nanoseconds", low=0.001, high=1e5, zero="link_latency")
    link_pins: int = key(0, "data pins each way, over which words go in beats", low=1, high=1024, zero="one a bit")
    link_overhead: int = key(0, "words of a block besides its own", low=0, high=4096)
    carrier: str = key("pins", "what links go over: pins; udp: LiteEth's core; aurora: a Vivado project, not routed",
                       choices=("pins", "udp", "aurora"))
    ip: tuple[str, ...] = key(("192.168.1.50",), "IPv4 address of the first chip, from which those of others count, or "
                              "of each, with carrier udp")
    mac: tuple[str, ...] = key(("02:00:00:00:00:50",), "the same of MAC addresses")
    port: int = key(4000, "first UDP port; each link has one", low=1024, high=60_000)

    def contradictions(self) -> list[str]:
        found = [f"chips.{name} must be given once for all chips or once for each of the {self.count}, not {len(each)} "
                 "times" for name in ("device", "multipliers", "memory", "ip", "mac")
                 if len(each := getattr(self, name)) not in (0, 1, self.count)]
        if self.link_pins and self.carrier != "pins":
            found.append(f"link_pins must be left out where {self.carrier} carries the words, not {self.link_pins}")
        found += [f"{name} must be left out where the carrier is {self.carrier}, since links over udp alone have one, "
                  f"not {value!r}" for name in ("ip", "mac", "port") if self.carrier != "udp"
                  and (value := getattr(self, name)) != getattr(Chips, name)]
        for name, rule, form in (("ip", IPV4, "192.168.1.50"), ("mac", MAC, "02:00:00:00:00:50")):
            given = getattr(self, name)
            found += [f"{name} must be an address such as {form}, not {each!r}" for each in given
                      if not re.fullmatch(rule, each, re.IGNORECASE)]
            if name == "ip" and len(given) == 1 and not found and int(given[0].split(".")[3]) + self.count > 255:
                found.append(f"ip must be followed by addresses for {self.count} chips, up to .254, not {given[0]!r}")
            if name == "mac" and len(given) == 1 and not found and int(given[0][-2:], 16) + self.count > 256:
                found.append(f"mac must be followed by addresses for {self.count} chips, up to :ff, not {given[0]!r}")
            if not given or len({each.lower() for each in given}) < len(given):
                found.append(f"{name} must be an address for each chip, all different, not {list(given)}")
        found += [f"A device must be one of {', '.join(devices())}, not {name!r}{nearest(name, devices())}"
                  for name in dict.fromkeys(self.device) if name not in devices()]
        if not self.device and not self.multipliers:
            found.append("Chips must have a budget, but none is given; name their device or their multipliers")
        if not self.pairs and self.topology not in TOPOLOGIES:
            found.append(f"A topology must be one of {', '.join(TOPOLOGIES)}, or pairs such as 0-1,1-2, not "
                         f"{self.topology!r}{nearest(self.topology, TOPOLOGIES)}")
        return found

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The pairs of chips with a link, where the topology names them."""
        if not re.fullmatch(r"\d{1,4}-\d{1,4}(,\d{1,4}-\d{1,4})*", self.topology):
            return ()
        return tuple((int(a), int(b)) for a, b in (each.split("-") for each in self.topology.split(",")))

    def of(self, values: Sequence[V], chip: int, usual: V) -> V:
        """The value of a chip."""
        return values[chip if len(values) > 1 else 0] if values else usual


TOPOLOGIES = ("all", "line", "ring")

IPV4 = r"(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}"

MAC = r"[0-9a-f][02468ace](:[0-9a-f]{2}){5}"
"""Form of the address of one station: an odd first byte is for groups."""

_WITH_CHIPS = ("multipliers", "objective", "levels", "clock_mhz", "family", "library")
"""Keys that hold for several chips, too."""


@dataclass(frozen=True)
class Hardware(Table):
    """Size and structure of the circuit."""

    multipliers: int = key(64, "real multipliers that the circuit may use", low=1, high=65536,
                           zero="all of the device's")
    streams: int = key(1, "independent sequences whose steps take turns: 1 for the lowest latency, 2 or 3 to fill "
                       "every cycle", low=1, high=8)
    max_steps: int = key(128, "longest sequence in steps, for bidirectional layers and gates, since the circuit stores "
                         "whole sequences; longer ones are cut", low=1, high=65536)
    objective: str = key("auto", "goal of the design. auto: an array for each layer or one for all, whichever has the "
                         "smaller product of cycles a step and latency; throughput: an array for each layer; latency: "
                         "one for all, for the lowest latency; area: one with the shortest step, for few "
                         "multipliers", choices=("auto", "throughput", "latency", "area"))
    levels: int = key(4, "largest number of logic levels between two registers of recurrent and fully connected "
                      "layers and norms; more levels shorten a step and slow the clock, see synthesis.md", low=4,
                      high=12)
    beat_blocks: int = key(1, "most blocks that streams and ports carry in a cycle, a power of two: more shorten "
                           "period and latency of wide fully connected layers and of cells",
                           low=1, high=16, zero="the best of them")
    latency: int = key(0, "latency_spaced at the most, in cycles; the objective chooses among designs within it",
                       low=1, high=10**9, zero="any")
    latency_us: float = key(0.0, "the same in microseconds, at clock_mhz or the estimated clock of the device",
                            low=1e-4, high=1e6, zero="any")
    clock_mhz: int = key(0, "target clock on the device; the levels follow from it", low=1, high=1000, zero="any")
    reloadable: bool = key(False, "add a port that exchanges weights, and saves and restores states, at run time; see "
                           "reload.md")
    clock_gating: bool = key(False, "give the registers of pipelines enables, so that the clock gates of an ASIC stop "
                             "their clock while they are idle; see asic.md")
    family: str = key("auto", "FPGA family for whose memories and tools the Verilog is written; results and cycles "
                      "are the same for all. auto: that of board.device, or generic without one",
                      choices=("auto", "generic", "xilinx", "ecp5", "ice40", "gowin", "intel"))
    dsp_packing: str = key("none", "ports of a DSP block that makes two products of narrow weights with one value of "
                           "the data; see synthesis.md. none: each product has a block of its own",
                           choices=("none", "27x18", "25x18"))
    protection: str = key("none", "check bits of the memories of weights, biases and programs, see faults.md. parity: "
                          "a wrong bit is flagged; secded: it is put right, and two are flagged; scrub: and it is "
                          "written right",
                          choices=("none", "parity", "secded", "scrub"))
    library: str = key("none", "standard cells to which `circulant asic` maps the design, and a sweep every point, for "
                       "its area, clock and energy; see sweep.md", choices=("none", *known()))
    bus: str = key("none", "add a wrapper with registers for a host, which also reach the port of a reloadable "
                   "design; see integration.md", choices=BUSES)
    argmax: bool = key(False, "end the network with the choice of the class: the index of the largest output, the "
                       "lowest if several are equal")
    chips: dict[str, Any] = key({}, "several chips in place of one, such as {count = 2, device = \"LFE5U-25F\"}; see "
                                "chips.md")

    def contradictions(self) -> list[str]:
        if not self.chips:
            return []
        if besides := self.besides("chips", *_WITH_CHIPS):
            return [f"hardware.chips must come without {', '.join(besides)}, which is for one chip; leave one out"]
        wrong = read(Chips, _listed(self.chips))[1]
        return [each.replace("[chips]", "[hardware.chips]").replace("chips.", "hardware.chips.") if
                each.startswith(("[", "chips.")) else f"hardware.chips: {each}" for each in wrong]

    @property
    def several(self) -> Chips | None:
        """The chips, where there are several."""
        return read(Chips, _listed(self.chips))[0] if self.chips else None


def _listed(chips: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keys of `Chips`, one value for all chips as a list."""
    each = ("device", "multipliers", "memory", "ip", "mac")
    return {name: [value] if name in each and isinstance(value, str | int) else value for name, value in chips.items()}
