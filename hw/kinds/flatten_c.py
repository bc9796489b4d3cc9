"""`sim.kinds.flatten.Flatten` in C."""
from circulant.hw.ctext.unit import Array, Stage, Unit, beside, stage
from circulant.hw.ctext.value import storage
from circulant.sim.kinds.flatten import Flatten

render = beside(__file__)


@stage.register
def _(layer: Flatten, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    type = storage(layer.output_format)
    text = render("flatten.c.j2", unit=unit, prefix=prefix, layer=layer, type=type,
                  pixels=layer.outputs // layer.inputs)
    return Stage(prefix, f"{layer.outputs} values of {'a row' if layer.rows else 'an image'}", text=text,
                 output=Array(type, f"{prefix}_y", layer.outputs), states=(), work=())
