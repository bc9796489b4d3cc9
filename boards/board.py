"""Boards as data, and the circuit that one of them holds: clock, reset, and a design behind its UART."""
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import import_module, resources
from typing import Any

from amaranth.build import Platform
from amaranth.hdl import ClockDomain, ClockSignal, Elaboratable, Module, Signal
from amaranth.lib import io
from amaranth.lib.cdc import ResetSynchronizer

from circulant.boards.link.linked_design import LinkedDesign
from circulant.boards.link.uart import LEAST
from circulant.boards.pll import PLLS
from circulant.sim.refusal import Refusal, nearest

__all__ = ["Board", "BoardTop", "board", "boards", "require_divisor"]

WRONG = 0.02
"""How far the rate of a UART may be from what is asked for; a byte bears twice as much."""


@dataclass(frozen=True)
class Board:
    """A board.

    Parameters:
        title: for people.
        platform: module and class of amaranth-boards, which know pins and oscillator.
        device, profile, synthesis: names of the device, of what ``hardware.family`` must be, of the Yosys family.
        pll: kind of PLL.
        loader: name of the board for openFPGALoader.
        mhz: clock that is asked for.
        baud: rate of the UART.
    """

    name: str
    title: str
    platform: str
    device: str
    profile: str
    synthesis: str
    pll: str
    loader: str
    mhz: float
    baud: int

    def make_platform(self) -> Platform:
        """The platform of amaranth-boards."""
        module, _, kind = self.platform.partition(":")
        found: Platform = getattr(import_module(f"amaranth_boards.{module}"), kind)()
        return found

    def divisor(self, mhz: float) -> int:
        """Clock cycles of a bit of the UART.

        Raises:
            Refusal: when no whole number of cycles is near enough.
        """
        return require_divisor(self.name, self.baud, mhz)


def require_divisor(name: str, baud: int, mhz: float) -> int:
    """Clock cycles of a bit of a UART.

    Raises:
        Refusal: when no whole number of cycles is near enough.
    """
    exact = mhz * 1e6 / baud
    if (cycles := round(exact)) < LEAST or abs(cycles / exact - 1) > WRONG:
        raise Refusal(f"The clock must be a multiple of the {baud:,} baud of {name}, within {WRONG:.0%}, not {mhz:g} "
                      "MHz; take another --mhz")
    return cycles


@cache
def boards() -> dict[str, Board]:
    """All known boards by name, as boards.toml lists them."""
    text = resources.files("circulant.boards").joinpath("boards.toml").read_text("utf-8")
    return {name: Board(name, **{field.name: entry[field.name] for field in fields(Board)[1:]})
            for name, entry in tomllib.loads(text).items()}


def board(name: str, *, besides: Collection[str] = ()) -> Board:
    """The board called ``name``.

    Parameters:
        besides: other names that could have been meant.

    Raises:
        Refusal: when there is none.
    """
    known = [*boards(), *besides]
    if name not in boards():
        raise Refusal(f"A board must be one of {', '.join(known)}, not {name!r}{nearest(name, known)}")
    return boards()[name]


class BoardTop(Elaboratable):
    """The circuit of a board.

    Parameters:
        board: what it is for.
        manifest: of the design.
        mhz: the clock that is asked for.
    """

    def __init__(self, board: Board, manifest: Mapping[str, Any], *, mhz: float) -> None:
        self._board, self._manifest = board, manifest
        platform = board.make_platform()
        self._settings = PLLS[board.pll].nearest(platform.default_clk_frequency / 1e6, mhz)
        self.mhz = self._settings.mhz
        self._divisor = board.divisor(self.mhz)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        pll = PLLS[self._board.pll]
        clock = Signal()
        locked = Signal()
        # The oscillator, the PLL, and a reset that lasts until the clock is steady.
        pin = platform.request(platform.default_clk, 0, dir="-")
        if pll.pad:
            source = pin.io
        else:
            m.submodules.oscillator = buffer = io.Buffer("i", pin)
            source = buffer.i
        m.submodules.pll = pll.instance(self._settings, source, clock, locked)
        m.domains.sync = ClockDomain("sync")
        m.d.comb += ClockSignal().eq(clock)
        m.submodules.reset = ResetSynchronizer(~locked, domain="sync", stages=3)

        # The design behind the UART, whose output is a register at the pin.
        uart = platform.request("uart", 0, dir="-")
        m.submodules.linked = linked = LinkedDesign(self._manifest, divisor=self._divisor)
        m.submodules.rx, m.submodules.tx = rx, tx = io.Buffer("i", uart.rx), io.Buffer("o", uart.tx)
        m.d.comb += [linked.rx.eq(rx.i), tx.o.eq(linked.tx)]
        return m
