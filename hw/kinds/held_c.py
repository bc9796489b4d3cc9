"""`sim.kinds.repeat.Repeat` and `sim.kinds.reverse.Reverse` in C: `circulant.hw.c.time_loops` chooses the vector, which
is copied; a gate is a product of it."""
from circulant.hw.ctext.unit import Array, Stage, Unit, beside, clips, stage
from circulant.hw.ctext.value import Value, storage
from circulant.sim.kinds.repeat import Repeat
from circulant.sim.kinds.reverse import Reverse

render = beside(__file__)

clips.register(Reverse, lambda layer: True)


@stage.register(Repeat)
@stage.register(Reverse)
def _(layer: Repeat | Reverse, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    type, given = storage(layer.output_format), layer.input_format
    y = Value.given("x[i]", given, foreign=foreign)
    text = render("held.c.j2", unit=unit, prefix=prefix, layer=layer, type=type, y=y,
                  counted=storage(layer.taken[0]) if layer.joins else "")
    return Stage(prefix, f"{layer.kind} of {layer.inputs} values", text,
                 output=Array(type, f"{prefix}_y", layer.outputs), states=(), work=())
