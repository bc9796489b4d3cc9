"""Clocks out of a board's oscillator: the settings of a PLL, and its instance, for each family that has a board."""
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from amaranth.hdl import Const, Instance, IOValue, Signal, Value

from circulant.sim.refusal import Refusal

__all__ = ["PLLS", "Pll", "Settings"]


class Settings(NamedTuple):
    """Dividers of a PLL, and what comes out.

    Members:
        mhz: of the output.
        reference, feedback, output: what the reference, the feedback and the oscillator are divided by.
    """

    mhz: float
    reference: int
    feedback: int
    output: int


def _ecp5(pin: float) -> Iterator[Settings]:
    """Lattice FPGA-TN-02200: detector at 3.125 MHz at least, oscillator at 400 to 800 MHz, feedback from the output."""
    for reference in range(1, 129):
        if pin / reference < 3.125:
            break
        for feedback in range(1, 81):
            mhz = round(pin * feedback / reference, 9)
            for output in range(1, 129):
                if 400 <= mhz * output <= 800:
                    yield Settings(mhz, reference, feedback, output)


def _ice40(pin: float) -> Iterator[Settings]:
    """Lattice FPGA-TN-02052: detector at 10 to 133 MHz, oscillator at 533 to 1066 MHz, output divided by 2**n."""
    for reference in range(1, 17):
        if not 10 <= pin / reference <= 133:
            continue
        for feedback in range(1, 65):
            oscillator = pin * feedback / reference
            if 533 <= oscillator <= 1066:
                for shift in range(1, 7):
                    yield Settings(oscillator / 2 ** shift, reference, feedback, shift)


def _gowin(pin: float) -> Iterator[Settings]:
    """Gowin UG286, GW2A: detector at 3 to 400 MHz, oscillator at 500 to 1250 MHz, feedback from the output."""
    for reference in range(1, 65):
        if pin / reference < 3:
            break
        for feedback in range(1, 65):
            mhz = round(pin * feedback / reference, 9)
            for output in (2, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128):
                if 500 <= mhz * output <= 1250:
                    yield Settings(mhz, reference, feedback, output)


def _ecp5_instance(found: Settings, source: Value | IOValue, clock: Signal, locked: Signal) -> Instance:
    return Instance(
        "EHXPLLL", a_ICP_CURRENT="12", a_LPF_RESISTOR="8", p_PLLRST_ENA="DISABLED", p_INTFB_WAKE="DISABLED",
        p_STDBY_ENABLE="DISABLED", p_DPHASE_SOURCE="DISABLED", p_OUTDIVIDER_MUXA="DIVA", p_CLKOP_ENABLE="ENABLED",
        p_CLKI_DIV=found.reference, p_CLKOP_DIV=found.output, p_CLKOP_CPHASE=found.output // 2, p_CLKOP_FPHASE=0,
        p_CLKFB_DIV=found.feedback, p_FEEDBK_PATH="CLKOP", i_RST=Const(0), i_STDBY=Const(0), i_CLKI=source,
        o_CLKOP=clock, i_CLKFB=clock, i_PHASESEL0=Const(0), i_PHASESEL1=Const(0), i_PHASEDIR=Const(1),
        i_PHASESTEP=Const(1), i_PHASELOADREG=Const(1), i_PLLWAKESYNC=Const(0), i_ENCLKOP=Const(0), o_LOCK=locked)


def _ice40_instance(found: Settings, source: Value | IOValue, clock: Signal, locked: Signal) -> Instance:
    return Instance(
        "SB_PLL40_PAD", p_FEEDBACK_PATH="SIMPLE", p_DIVR=Const(found.reference - 1, 4),
        p_DIVF=Const(found.feedback - 1, 7), p_DIVQ=Const(found.output, 3), p_FILTER_RANGE=Const(1, 3),
        i_PACKAGEPIN=source, i_RESETB=Const(1), i_BYPASS=Const(0), o_PLLOUTGLOBAL=clock, o_LOCK=locked)


def _gowin_instance(found: Settings, source: Value | IOValue, clock: Signal, locked: Signal) -> Instance:
    return Instance(
        "rPLL", p_DEVICE="GW2A-18C", p_FCLKIN=f"{found.mhz * found.reference / found.feedback:g}",
        p_IDIV_SEL=found.reference - 1, p_FBDIV_SEL=found.feedback - 1,
        p_ODIV_SEL=found.output, p_DYN_IDIV_SEL="false", p_DYN_FBDIV_SEL="false", p_DYN_ODIV_SEL="false",
        p_PSDA_SEL="0000", p_DUTYDA_SEL="1000", p_DYN_DA_EN="false", p_CLKFB_SEL="internal", p_CLKOUT_BYPASS="false",
        i_CLKIN=source, i_CLKFB=Const(0), i_RESET=Const(0), i_RESET_P=Const(0), i_FBDSEL=Const(0, 6),
        i_IDSEL=Const(0, 6), i_ODSEL=Const(0, 6), i_PSDA=Const(0, 4), i_DUTYDA=Const(0, 4), i_FDLY=Const(0, 4),
        o_CLKOUT=clock, o_LOCK=locked)


@dataclass(frozen=True)
class Pll:
    """A PLL of a family.

    Parameters:
        settings: all that it can make of an oscillator's MHz.
        instance: of settings, its source, its clock and whether that is steady.
        pad: whether the source is the pin itself.
    """

    settings: Callable[[float], Iterator[Settings]]
    instance: Callable[[Settings, Value | IOValue, Signal, Signal], Instance]
    pad: bool = False

    def nearest(self, pin: float, wanted: float) -> Settings:
        """The settings whose output is nearest to ``wanted`` MHz, and not above it.

        Raises:
            Refusal: when none is within 5 %.
        """
        possible = [each for each in self.settings(pin) if each.mhz <= wanted * (1 + 1e-9)]
        best = max(possible, key=lambda each: (each.mhz, -each.reference), default=None)
        if best is None or best.mhz < wanted * 0.95:
            raise Refusal(f"The clock must be one that a PLL makes of {pin:g} MHz, not {wanted:g} MHz; take "
                          f"{min((each.mhz for each in self.settings(pin)), key=lambda mhz: abs(mhz - wanted)):g}")
        return best


PLLS = {"ecp5": Pll(_ecp5, _ecp5_instance), "ice40": Pll(_ice40, _ice40_instance, pad=True),
        "gowin": Pll(_gowin, _gowin_instance)}
"""By the names in boards.toml."""
