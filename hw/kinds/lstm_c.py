"""`sim.kinds.lstm.Lstm` in C, with peepholes and a projection where it has them."""
from circulant.hw.ctext import product, table
from circulant.hw.ctext.unit import Array, Stage, Unit, beside, clips, stage
from circulant.hw.ctext.value import Value, storage
from circulant.sim.kinds.lstm import Lstm

render = beside(__file__)

clips.register(Lstm, lambda layer: True)


@stage.register
def _(layer: Lstm, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    pre, state, cell = layer.pre_format, layer.output_format, layer.cell
    of_x, of_y = layer.gates.parts
    sigmoid_text, sigmoid = table.emit(unit, f"{prefix}_sigmoid", layer.sigmoid)
    tanh_text, tanh = table.emit(unit, f"{prefix}_tanh", layer.tanh)
    cell_text, tanh_cell = table.emit(unit, f"{prefix}_tanh_cell", layer.tanh_cell)

    def of(name: str, value: Value) -> Value:
        return Value.of(name, value.lo, value.hi)

    i, f, o = (of(name, sigmoid) for name in ("i", "f", "o"))
    g, bent = of("g", tanh), of("bent", tanh_cell)
    c, row = Value.of("c", cell.lo, cell.hi), Value.of("row", pre.lo, pre.hi)
    peeked, weight, peepholes = row, row, ""
    if layer.peephole is not None:
        values = layer.peephole.ravel().tolist()
        weight = Value.of("weight", min(values), max(values))
        shift = layer.peephole_format.frac + cell.frac - pre.frac
        peeked = (row + (weight * c).half_up(shift)).clip(pre.width)
        peepholes = unit.table(f"{prefix}_peephole", values)
    one = state.frac
    following = ((f * c).half_up(one) + (i * g).half_up(2 * one - cell.frac)).clip(cell.width)
    m = (o * bent).half_up(one).clip(state.width)

    texts = [product.transform(unit, f"{prefix}_input_spectra", of_x, layer.inputs, foreign=foreign),
             product.transform(unit, f"{prefix}_output_spectra", of_y, layer.outputs),
             product.rows(unit, f"{prefix}_gates", layer.gates)]
    work = [product.spectra(of_x, "input_spectra"), product.spectra(of_y, "output_spectra"),
            Array(storage(pre), "gates", layer.gates.rows)]
    summary = f"LSTM, {layer.inputs} to {layer.hidden}, blocks of {layer.gates.block_size}"
    if layer.peephole is not None:
        summary += ", with peepholes"
    if layer.projection is not None:
        texts += [product.transform(unit, f"{prefix}_projected_spectra", layer.projection, layer.hidden),
                  product.rows(unit, f"{prefix}_projection", layer.projection)]
        work += [product.spectra(layer.projection, "projected_spectra"), Array(storage(state), "m", layer.hidden),
                 Array(storage(state), "rows", layer.projection.rows)]
        summary += f", projected to {layer.outputs}"
    text = "\n".join([*texts, sigmoid_text, tanh_text, cell_text, render(
        "lstm.c.j2", unit=unit, prefix=prefix, layer=layer, peepholes=peepholes,
        x_type=storage(layer.input_format), pre_type=storage(pre), state_type=storage(state), cell_type=storage(cell),
        i=i, f=f, g=g, o=o, c=c, bent=bent, row=row, weight=weight, peeked=peeked, following=following, m=m,
        rows=layer.gates.rows // 4)])
    y, kept = Array(storage(state), f"{prefix}_y", layer.outputs), Array(storage(cell), f"{prefix}_c", layer.hidden)
    return Stage(prefix, summary, text=text, output=y, states=(y, kept), work=tuple(work))
