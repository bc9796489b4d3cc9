"""Cosimulation: the generated Verilog under Verilator and cocotb, against the golden model, word for word.

The names below are fetched when they are first used: the processes that compile and simulate start without them.
"""
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from circulant.sim.cosim.judge.check import Mismatch, SimulationError
    from circulant.sim.cosim.state_exchange import Exchange, exchange
    from circulant.sim.cosim.verification import Progress, Verification, verify

__all__ = ["Exchange", "Mismatch", "Progress", "SimulationError", "Verification", "exchange", "verify"]


def __getattr__(name: str) -> object:
    from circulant.sim.public import fetched

    return fetched(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
