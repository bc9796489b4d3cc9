"""`sim.kinds.flatten.Flatten` in C."""
from circulant.hw.ctext.unit import Array, Stage, Unit, beside, stage
from circulant.hw.ctext.value import storage
from circulant.sim.kinds.flatten import Flatten
from circulant.sim.refusal import Refusal

render = beside(__file__)


@stage.register
def _(layer: Flatten, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    if layer.rows:
        raise Refusal(f"The C target takes whole images or steps, but layer {layer.name!r} makes steps of the rows of "
                      "an image; take the parts before and behind it, or generate Verilog")
    type = storage(layer.output_format)
    text = render("flatten.c.j2", unit=unit, prefix=prefix, layer=layer, type=type,
                  pixels=layer.grid[0] * layer.grid[1])
    return Stage(prefix, f"{layer.outputs} values of an image", text=text,
                 output=Array(type, f"{prefix}_y", layer.outputs), states=(), work=())
