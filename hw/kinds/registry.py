"""Where the kinds of layers are: with these files their plans, latencies and units are registered."""
from circulant.hw.kinds import (
    activation,
    argmax,
    bidirectional,
    blend,
    concat,
    conv,
    decay,
    elementwise,
    flatten,
    gru,
    linear,
    lstm,
    norm,
    over_time,
    pool,
    product,
    recurrent,
    residual,
    rnn,
    scale,
    slice,
    taps,
)

__all__ = ["KINDS"]

KINDS = (activation, argmax, bidirectional, blend, concat, conv, decay, elementwise, flatten, gru, linear, lstm, norm,
         over_time, pool, product, recurrent, residual, rnn, scale, slice, taps)
