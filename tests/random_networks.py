"""Random networks of every kind of layer, and inputs that also saturate."""
import numpy as np

from circulant.sim.kinds.activation import FloatActivation
from circulant.sim.kinds.conv import FloatConv
from circulant.sim.kinds.decay import FloatDecay
from circulant.sim.kinds.gru import FloatGru
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.kinds.lstm import FloatLstm
from circulant.sim.kinds.norm import FloatNorm
from circulant.sim.kinds.rnn import FloatRnn
from circulant.sim.kinds.scale import FloatScale
from circulant.sim.kinds.spiral import FloatSpiral
from circulant.sim.kinds.taps import FloatTaps
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real import float_model


class Random:
    """Random layers in float64.

    Parameters:
        rng: in place of the seed's.
        scale: deviation of weights and biases.
        even: whether weights are so much smaller in wide matrices that sums are not.
    """

    def __init__(self, seed=0, *, rng=None, scale=0.4, even=False):
        self._rng, self._scale, self._even = rng or np.random.default_rng((seed, 19)), scale, even

    def normal(self, *shape, scale=None):
        return self._rng.normal(0, self._scale if scale is None else scale, shape)

    def columns(self, k, rows, columns, *before):
        """First columns of a matrix in blocks of k, ragged edges filled as export fills them."""
        made = self.normal(*before, -(-rows // k), -(-columns // k), k)
        return made / np.sqrt(columns) * 2 if self._even else made

    def linear(self, name, inputs, outputs, k, relu=False):
        return FloatLinear(name, inputs, outputs=outputs, weight=self.columns(k, outputs, inputs),
                           bias=self.normal(outputs), relu=relu)

    def gru(self, name, inputs, hidden, k, returns="last", reset="after", hard=False,
            nonlinearity="tanh"):
        return FloatGru(
            name, inputs=inputs, hidden=hidden, weight_ih=self.columns(k, hidden, inputs, 3),
            weight_hh=self.columns(k, hidden, hidden, 3),
            bias_ih=self.normal(3, hidden), bias_hh=self.normal(3, hidden), returns=returns, reset=reset, hard=hard,
            nonlinearity=nonlinearity)

    def rnn(self, name, inputs, hidden, k, returns="last", nonlinearity="tanh"):
        return FloatRnn(
            name, inputs=inputs, hidden=hidden, weight_ih=self.columns(k, hidden, inputs, 1),
            weight_hh=self.columns(k, hidden, hidden, 1),
            bias_ih=self.normal(1, hidden), bias_hh=self.normal(1, hidden), returns=returns, nonlinearity=nonlinearity)

    def lstm(self, name, inputs, hidden, k, returns="last", projection=0, peephole=False):
        outputs = projection or hidden
        return FloatLstm(
            name, inputs=inputs, hidden=hidden, outputs=outputs, weight_ih=self.columns(k, hidden, inputs, 4),
            weight_hh=self.columns(k, hidden, outputs, 4),
            bias_ih=self.normal(4, hidden), bias_hh=self.normal(4, hidden),
            projection=self.columns(k, outputs, hidden) if projection else None,
            peephole=self.normal(3, hidden) if peephole else None, returns=returns)

    def conv(self, name, inputs, outputs, k, grid, window, relu=False):
        return FloatConv(name, inputs=inputs, outputs=outputs, grid=grid, window=window,
                         weight=self.columns(k, outputs, inputs, window.positions), bias=self.normal(outputs),
                         relu=relu)

    def scale(self, name, inputs, relu=False):
        return FloatScale(name, inputs, self.normal(inputs, scale=1.0), self.normal(inputs), relu)

    def norm(self, name, inputs, mode="layer"):
        return FloatNorm(name, inputs, mode, 1 + self.normal(inputs), self.normal(inputs))

    def taps(self, name, inputs, taps, dilation=1, k=1):
        return FloatTaps(name, inputs, taps, dilation, -(-inputs // k) * k)

    def decay(self, name, inputs):
        return FloatDecay(name, inputs, self._rng.uniform(-1, 1, inputs))

    def spiral(self, name, inputs):
        """A complex recurrence, |λ| from 0 to 1."""
        size, angle = self._rng.uniform(0, 1, inputs // 2), self._rng.uniform(-np.pi, np.pi, inputs // 2)
        return FloatSpiral(name, inputs, size * np.cos(angle), size * np.sin(angle))

    def activation(self, name, inputs, function, *parameters):
        return FloatActivation(name, inputs, function, parameters)

    def network(self, layers, inputs, *, sequence=False, shape=(), **widths):
        model = float_model.Model.chain("random", inputs, sequence, tuple(layers), shape)
        steps = (6,) if sequence else ()
        return quantize(model, self._rng.normal(0, 1, (20, *(shape or (*steps, inputs)))), **widths)

    def inputs(self, network, steps=6, samples=3):
        """Integers of the whole input format: what calibration has not shown, so that values also saturate."""
        form, grid = network.input_format, network.flow.grid
        axes = (np.prod(grid),) if grid else (steps,) if network.sequence else ()
        return self._rng.integers(form.lo, form.hi + 1, (samples, *axes, network.flow.size))
