"""`sim.kinds.linear.Linear` in C."""
from circulant.hw.ctext import product
from circulant.hw.ctext.unit import Array, Stage, Unit, beside, clips, stage
from circulant.hw.ctext.value import storage
from circulant.sim.kinds.linear import Linear

render = beside(__file__)

clips.register(Linear, lambda layer: True)


@stage.register
def _(layer: Linear, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    matrix, y_type = layer.product, storage(layer.output_format)
    work = [product.spectra(matrix, "spectra")]
    if padded := matrix.rows != layer.outputs:
        work.append(Array(y_type, "rows", matrix.rows))
    text = "\n".join([
        product.transform(unit, f"{prefix}_spectra", matrix, layer.inputs, foreign=foreign),
        product.rows(unit, f"{prefix}_product", matrix),
        render("linear.c.j2", unit=unit, prefix=prefix, layer=layer, padded=padded,
               x_type=storage(layer.input_format), y_type=y_type)])
    return Stage(prefix, f"linear, {layer.inputs} to {layer.outputs}, blocks of {matrix.block_size}", text=text,
                 output=Array(y_type, f"{prefix}_y", layer.outputs), states=(), work=tuple(work))
