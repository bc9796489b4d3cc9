"""`sim.kinds.linear.Linear` in C."""
from circulant.hw.c import product
from circulant.hw.c.unit import Array, Stage, Unit, render, stage
from circulant.hw.c.value import storage
from circulant.sim.kinds.linear import Linear


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
