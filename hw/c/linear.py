"""`sim.linear.Linear` in C."""
from circulant.hw.c import product
from circulant.hw.c.unit import Array, Stage, Unit, render
from circulant.hw.c.value import storage
from circulant.sim.linear import Linear

__all__ = ["emit"]


def emit(unit: Unit, prefix: str, layer: Linear, *, foreign: bool) -> Stage:
    spectra = product.spectra(layer.product)
    y_type = storage(layer.output_format)
    padded = layer.product.rows != layer.outputs
    text = product.emit(unit, f"{prefix}_product", layer.product, layer.inputs, foreign=foreign) + render(
        "linear.c.j2", unit=unit, prefix=prefix, layer=layer, x_type=storage(layer.input_format), y_type=y_type, padded=padded)
    rows = (Array(y_type, "rows", layer.product.rows),) if padded else ()
    return Stage(prefix, f"{prefix}: linear, {layer.inputs} to {layer.outputs}, blocks of {layer.product.block_size}", text,
                 Array(y_type, f"{prefix}_y", layer.outputs), False, (spectra, *rows))
