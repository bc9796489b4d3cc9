"""The first value inside a circuit that differs from the golden model: where, when, and both integers."""
from circulant.sim.cosim.diverge.locate import Divergence, diverging, locate

__all__ = ["Divergence", "diverging", "locate"]
