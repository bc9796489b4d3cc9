"""Cosimulation: the generated Verilog under Verilator and cocotb, against the golden model, word for word."""
from circulant.sim.cosim.check import Mismatch, SimulationError
from circulant.sim.cosim.verify import Progress, Verification, verify

__all__ = ["Mismatch", "Progress", "SimulationError", "Verification", "verify"]
