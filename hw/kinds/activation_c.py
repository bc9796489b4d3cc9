"""`sim.kinds.activation.Activation` in C."""
from circulant.hw.ctext import table
from circulant.hw.ctext.unit import Array, Stage, Unit, beside, stage
from circulant.hw.ctext.value import storage
from circulant.sim.kinds.activation import Activation

render = beside(__file__)


@stage.register
def _(layer: Activation, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    y_type = storage(layer.output_format)
    text, _ = table.emit(unit, f"{prefix}_table", layer.table)
    text = "\n".join([text, render("activation.c.j2", unit=unit, prefix=prefix, layer=layer, y_type=y_type,
                                   x_type=storage(layer.input_format))])
    return Stage(prefix, f"{layer.table.function} of {layer.inputs}", text,
                 output=Array(y_type, f"{prefix}_y", layer.outputs), states=(), work=())
