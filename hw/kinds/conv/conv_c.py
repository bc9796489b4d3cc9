"""`sim.kinds.conv.Conv` in C: each pixel is transformed once, and each output pixel sums up what the kernel sees."""
from circulant.hw.ctext import product
from circulant.hw.ctext.unit import Array, Stage, Unit, beside, clips, stage
from circulant.hw.ctext.value import storage
from circulant.sim.kinds.conv import Conv

render = beside(__file__)

clips.register(Conv, lambda layer: True)


@stage.register
def _(layer: Conv, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    matrix, y_type, (down, across) = layer.product, storage(layer.output_format), layer.output_grid
    values = layer.blocks * matrix.block_size
    spectra = storage(matrix.spectrum)
    work = [Array(spectra, "spectra", values * layer.grid[0] * layer.grid[1])]
    if padded := matrix.rows != layer.outputs:
        work.append(Array(y_type, "rows", matrix.rows))
    text = "\n".join([
        product.transform(unit, f"{prefix}_spectra", matrix, layer.inputs, foreign=foreign,
                          positions=layer.window.positions),
        product.rows(unit, f"{prefix}_product", matrix, layer),
        render("conv.c.j2", unit=unit, prefix=prefix, layer=layer, padded=padded, values=values, spectra=spectra,
               x_type=storage(layer.input_format), y_type=y_type)])
    kernel = " x ".join(map(str, layer.window.kernel))
    return Stage(prefix, f"convolution of {kernel}, {layer.inputs} to {layer.outputs} channels, blocks of "
                         f"{matrix.block_size}", text=text,
                 output=Array(y_type, f"{prefix}_y", layer.outputs * down * across), states=(), work=tuple(work))
