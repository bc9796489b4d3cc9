"""`sim.kinds.slice.Slice` in C."""
from circulant.hw.ctext.unit import Array, Stage, Unit, beside, clips, stage
from circulant.hw.ctext.value import Value, storage
from circulant.sim.kinds.slice import Slice

render = beside(__file__)

clips.register(Slice, lambda layer: True)


@stage.register
def _(layer: Slice, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    y_type = storage(layer.output_format)
    y = Value.given(f"x[i + {layer.first} * LANES]", layer.input_format, foreign=foreign)
    return Stage(prefix, f"{layer.size} of {layer.inputs} values", render(
        "slice.c.j2", unit=unit, prefix=prefix, layer=layer, y=y, y_type=y_type),
        output=Array(y_type, f"{prefix}_y", layer.outputs), states=(), work=())
