"""Where the units of the kinds of layers are: with these files their implementations of `hw.unit` are there."""
from circulant.hw.layers import (
    activation,
    bidirectional,
    conv,
    flatten,
    joins,
    linear,
    pool,
    recurrent,
    residual,
    scale,
    slice,
)
from circulant.hw.layers.reduce import argmax, over_time

__all__ = ["KINDS"]

KINDS = (activation, argmax, bidirectional, conv, flatten, joins, linear, over_time, pool, recurrent, residual, scale,
         slice)
