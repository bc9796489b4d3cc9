"""`sim.kinds.over_time.OverTime` in C: what the steps so far make, and once a sequence a mean's division."""
from circulant.hw.ctext.unit import Array, Stage, Unit, beside, stage
from circulant.hw.ctext.value import Value, storage
from circulant.sim.arith.fixed import Format, round_shift
from circulant.sim.kinds.over_time import STEPS, OverTime

render = beside(__file__)


@stage.register
def _(layer: OverTime, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    mean, x_type = layer.mode == "mean", storage(layer.input_format)
    kept = Array(storage(Format(layer.sum_bits, 0)), f"{prefix}_kept", layer.inputs)
    steps = Array("int32_t", f"{prefix}_steps", 1)
    text = render("over_time.c.j2", unit=unit, prefix=prefix, layer=layer, mean=mean, x_type=x_type,
                  kept_type=kept.type, most=STEPS)
    first = Stage(prefix, f"{layer.mode} of {layer.inputs} over time", text=text, output=kept, states=(kept, steps),
                  work=())
    if not mean:
        return first
    given, y_type = layer.input_format, storage(layer.output_format)
    value = Value.of("value", *(round_shift(end, -layer.lift) for end in (given.lo, given.hi)))
    divided = render("mean.c.j2", unit=unit, prefix=prefix, layer=layer, kept_type=kept.type, y_type=y_type,
                     value=value, y=value.clip(layer.output_format.width),
                     quotient=unit.function("quotient64", lambda: render("quotient.c.j2")))
    then = Stage(f"{prefix}_mean", "its division by the steps", text=divided,
                 output=Array(y_type, f"{prefix}_y", layer.outputs), states=(), work=())
    return Stage(first.prefix, first.summary, first.text, output=kept, states=first.states, work=(), then=(then,))
