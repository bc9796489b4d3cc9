"""Where the kinds of layers are: with these files their plans, latencies and units are registered."""
from circulant.hw.kinds import (
    activation,
    argmax,
    bidirectional,
    concat,
    conv,
    elementwise,
    flatten,
    gru,
    linear,
    lstm,
    over_time,
    pool,
    product,
    recurrent,
    residual,
    rnn,
    scale,
    slice,
)

__all__ = ["KINDS"]

KINDS = (activation, argmax, bidirectional, concat, conv, elementwise, flatten, gru, linear, lstm, over_time, pool,
         product, recurrent, residual, rnn, scale, slice)
