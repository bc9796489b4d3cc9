"""`sim.kinds.argmax.Argmax` in C."""
from circulant.hw.ctext.unit import Array, Stage, Unit, beside, stage
from circulant.hw.ctext.value import storage
from circulant.sim.kinds.argmax import Argmax

render = beside(__file__)


@stage.register
def _(layer: Argmax, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    y_type = storage(layer.output_format)
    text = render("argmax.c.j2", unit=unit, prefix=prefix, layer=layer, x_type=storage(layer.input_format),
                  y_type=y_type)
    return Stage(prefix, f"place of the largest of {layer.inputs}", text=text, output=Array(y_type, f"{prefix}_y", 1),
                 states=(), work=())
