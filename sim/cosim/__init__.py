"""Cosimulation: the generated Verilog under Verilator and cocotb, against the golden model, word for word."""
from circulant.sim.cosim.check import Mismatch, SimulationError
from circulant.sim.cosim.state_exchange import Exchange, exchange
from circulant.sim.cosim.verification import Progress, Verification, verify

__all__ = ["Exchange", "Mismatch", "Progress", "SimulationError", "Verification", "exchange", "verify"]
