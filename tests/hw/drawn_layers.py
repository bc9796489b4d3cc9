"""Random quantized layers, and their vectors in blocks."""
import numpy as np

from circulant.sim.arith.circulant import JointProduct, Product, pad
from circulant.sim.arith.fixed import Format
from circulant.sim.arith.segments import fit_pwl
from circulant.sim.kinds.gru import Gru
from circulant.sim.kinds.linear import Linear
from circulant.sim.kinds.lstm import Lstm

STATE, PRE, CELL, PEEPHOLE = Format(16, 15), Format(16, 12), Format(16, 13), Format(12, 10)


def product(rng: np.random.Generator, rows: int, columns: int, k: int, output: Format, *, fan_in: int = 0,
            bias: bool = True) -> Product:
    """A matrix of (rows, columns) blocks whose sums neither vanish nor always saturate."""
    weight = Format(12, 11)
    spread = min(1.0, 1.5 / np.sqrt(fan_in or columns * k)) * np.sqrt(k) / 2
    weights = np.clip(rng.normal(size=(rows, columns, k)) * spread * 2**11, weight.lo, weight.hi).astype(np.int64)
    spectrum = Format(17, STATE.frac - max(0, k.bit_length() - 3))
    values = rng.integers(-3000, 3000, rows * k) if bias else np.zeros(rows * k, np.int64)
    return Product(weights, bias=values, weight=weight, input=STATE, spectrum=spectrum,
                   product=Format(24, spectrum.frac + 1), output=output, twiddle_bits=14)


def lstm(seed: int, *, k: int, inputs: int, hidden: int, projection: int = 0, peephole: bool = True,
         returns: str = "sequence") -> Lstm:
    rng, outputs = np.random.default_rng(seed), projection or hidden
    (blocks, x, y), fan = (-(-size // k) for size in (hidden, inputs, outputs)), inputs + outputs
    gates = JointProduct((product(rng, 4 * blocks, x, k, PRE, fan_in=fan),
                          product(rng, 4 * blocks, y, k, PRE, fan_in=fan, bias=False)))
    return Lstm("lstm", inputs=inputs, hidden=hidden, outputs=outputs, returns=returns, gates=gates,
                projection=product(rng, y, blocks, k, STATE) if projection else None,
                peephole=rng.integers(-800, 800, (3, hidden)) if peephole else None, peephole_format=PEEPHOLE,
                cell=CELL, sigmoid=fit_pwl("sigmoid", PRE, STATE, 64), tanh=fit_pwl("tanh", PRE, STATE, 64),
                tanh_cell=fit_pwl("tanh", CELL, STATE, 64))


def gru(seed: int, *, k: int, inputs: int, hidden: int, reset: str = "after", returns: str = "sequence") -> Gru:
    rng = np.random.default_rng(seed)
    x, h = (-(-size // k) for size in (inputs, hidden))
    fan = inputs + hidden
    gates = JointProduct((product(rng, 2 * h, x, k, PRE, fan_in=fan),
                          product(rng, 2 * h, h, k, PRE, fan_in=fan, bias=False)))
    candidate = product(rng, h, x, k, PRE, fan_in=fan)
    recurrent = product(rng, h, h, k, PRE, fan_in=fan, bias=reset == "after")
    after = reset == "after"
    return Gru("gru", inputs=inputs, hidden=hidden, returns=returns, reset=reset, gates=gates,
               candidate=candidate if after else JointProduct((candidate, recurrent)),
               candidate_recurrent=recurrent if after else None,
               sigmoid=fit_pwl("sigmoid", PRE, STATE, 64), tanh=fit_pwl("tanh", PRE, STATE, 64))


def linear(seed: int, *, k: int, inputs: int, outputs: int) -> Linear:
    rng = np.random.default_rng(seed)
    return Linear("linear", inputs, outputs, product(rng, -(-outputs // k), -(-inputs // k), k, PRE))


def blocks(vector: np.ndarray, k: int) -> list[list[int]]:
    """A vector in blocks of k, zeros behind it."""
    return pad(vector, -(-len(vector) // k) * k).reshape(-1, k).tolist()
