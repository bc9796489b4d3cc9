"""`sim.kinds.depthwise.Depthwise` in C."""
import numpy as np

from circulant.hw.ctext.unit import Array, Stage, Unit, beside, clips, stage
from circulant.hw.ctext.value import Value, storage
from circulant.sim.kinds.depthwise import Depthwise

render = beside(__file__)

clips.register(Depthwise, lambda layer: True)


@stage.register
def _(layer: Depthwise, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    given, y_type, (down, across) = layer.input_format, storage(layer.output_format), layer.output_grid
    x = Value.given("x[at + i * LANES + l]", given, foreign=foreign)
    reach = int(np.abs(layer.weights.astype(object)).sum(0).max()) * -given.lo
    weight = Value.of("weight", int(layer.weights.min()), int(layer.weights.max()))
    bias, total = Value.of("bias", int(layer.bias.min()), int(layer.bias.max())), Value.of("sum", -reach, reach)
    text = render(
        "depthwise.c.j2", unit=unit, prefix=prefix, layer=layer, x=x, sum=total, weight=weight, bias=bias,
        term=weight * Value.of("value", given.lo, given.hi),
        y=(total.half_up(layer.rounding) + bias).clip(layer.output_format.width), x_type=storage(given), y_type=y_type,
        weights=unit.table(f"{prefix}_weights", layer.weights.ravel().tolist()),
        biases=unit.table(f"{prefix}_bias", layer.bias.tolist()))
    return Stage(prefix, f"convolution of each of {layer.inputs} channels", text=text,
                 output=Array(y_type, f"{prefix}_y", layer.outputs * down * across), states=(), work=())
