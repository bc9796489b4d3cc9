"""Recurrent layers in integers from float64 ones and chosen formats: which rows and biases make which product."""
import numpy as np

from circulant.sim.arith.activation import Pwl
from circulant.sim.arith.circulant import JointProduct, Product
from circulant.sim.arith.fixed import Format, Reals
from circulant.sim.golden.gru import Gru
from circulant.sim.golden.lstm import Lstm
from circulant.sim.golden.rnn import Rnn
from circulant.sim.quantize.formats import Spectral
from circulant.sim.real import float_model

__all__ = ["assemble_gru", "assemble_lstm", "assemble_rnn"]


def assemble_gru(layer: float_model.Gru, shared: Spectral, pre: Format, sigmoid: Pwl, tanh: Pwl) -> Gru:
    """
    Parameters:
        shared: formats of both matrices, that of the input first.
        pre: of all pre-activations.
    """
    merged, after = layer.bias_ih + layer.bias_hh, layer.reset == "after"

    def part(of: int, gates: slice, bias: Reals | None) -> Product:
        return shared.part((layer.weight_ih, layer.weight_hh)[of][gates], bias, pre, of, first=gates.start)

    first, n = slice(0, 2), slice(2, 3)
    gates = JointProduct((part(0, first, merged[first]), part(1, first, None)))
    candidate: Product | JointProduct = part(0, n, layer.bias_ih[n])
    if not after:
        candidate = JointProduct((part(0, n, merged[n]), part(1, n, None)))
    return Gru(layer.name, inputs=layer.inputs, hidden=layer.hidden, returns=layer.returns, reset=layer.reset,
               gates=gates, candidate=candidate,
               candidate_recurrent=part(1, n, layer.bias_hh[n]) if after else None, sigmoid=sigmoid, tanh=tanh)


def assemble_lstm(layer: float_model.Lstm, shared: Spectral, pre: Format, projection: Product | None, peephole: Format,
                  cell: Format, tables: tuple[Pwl, Pwl, Pwl]) -> Lstm:
    """
    Parameters:
        shared: formats of both matrices, that of the input first.
        pre: of the pre-activations.
        tables: sigmoid, tanh, and tanh of the cell.
    """
    gates = JointProduct((shared.part(layer.weight_ih, layer.bias_ih + layer.bias_hh, pre, 0),
                          shared.part(layer.weight_hh, None, pre, 1)))
    weights = None if layer.peephole is None else np.asarray(peephole.quantize(layer.peephole))
    sigmoid, tanh, tanh_cell = tables
    return Lstm(layer.name, inputs=layer.inputs, hidden=layer.hidden, outputs=layer.outputs, returns=layer.returns,
                gates=gates, projection=projection, peephole=weights, peephole_format=peephole, cell=cell,
                sigmoid=sigmoid, tanh=tanh, tanh_cell=tanh_cell)


def assemble_rnn(layer: float_model.Rnn, shared: Spectral, pre: Format, tanh: Pwl) -> Rnn:
    """
    Parameters:
        shared: formats of both matrices, that of the input first.
        pre: of the pre-activations.
    """
    gates = JointProduct((shared.part(layer.weight_ih, layer.bias_ih + layer.bias_hh, pre, 0),
                          shared.part(layer.weight_hh, None, pre, 1)))
    return Rnn(layer.name, layer.inputs, layer.hidden, returns=layer.returns, gates=gates, tanh=tanh)
