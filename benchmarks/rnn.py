"""A recurrent layer with random weights, of the papers' shapes and others."""
import numpy as np

from circulant.sim.kinds.gru import FloatGru
from circulant.sim.kinds.lstm import FloatLstm

__all__ = ["layer"]


def layer(cell: str, inputs: int, hidden: int, projection: int, block: int,
          seed: int = 0) -> FloatLstm | FloatGru:
    """A layer with random weights: an LSTM with peepholes, or torch's GRU."""
    rng = np.random.default_rng(seed)
    outputs = projection or hidden
    spread = 2 / np.sqrt(inputs + outputs)

    def matrix(rows: int, columns: int, *gates: int) -> np.ndarray:
        return rng.normal(0, spread, (*gates, -(-rows // block), -(-columns // block), block))

    if cell == "gru":
        b_ih, b_hh = rng.normal(0, 0.1, (2, 3, hidden))
        return FloatGru("gru", inputs=inputs, hidden=hidden, weight_ih=matrix(hidden, inputs, 3),
                        weight_hh=matrix(hidden, hidden, 3), bias_ih=b_ih, bias_hh=b_hh, returns="sequence")
    b_ih, b_hh = rng.normal(0, 0.1, (2, 4, hidden))
    return FloatLstm("lstm", inputs=inputs, hidden=hidden, outputs=outputs, weight_ih=matrix(hidden, inputs, 4),
                     weight_hh=matrix(hidden, outputs, 4), bias_ih=b_ih, bias_hh=b_hh,
                     projection=matrix(projection, hidden) if projection else None,
                     peephole=rng.normal(0, 0.1, (3, hidden)), returns="sequence")
