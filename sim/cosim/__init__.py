"""Cosimulation: the generated Verilog under Verilator and cocotb, against the golden model, word for word.

The names below are fetched when they are first used: the processes that compile and simulate start without them.
"""
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from circulant.sim.cosim.judge.check import Mismatch, SimulationError
    from circulant.sim.cosim.state_exchange import Exchange, exchange
    from circulant.sim.cosim.verification import Progress, Verification, verify

_HOME = {"Mismatch": "judge.check", "SimulationError": "judge.check", "Exchange": "state_exchange",
         "exchange": "state_exchange", "Progress": "verification", "Verification": "verification",
         "verify": "verification"}

__all__ = ["Exchange", "Mismatch", "Progress", "SimulationError", "Verification", "exchange", "verify"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"circulant.sim.cosim.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
