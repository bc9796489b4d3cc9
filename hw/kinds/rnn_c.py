"""`sim.kinds.rnn.Rnn` in C."""
from circulant.hw.ctext import product, table
from circulant.hw.ctext.unit import Array, Stage, Unit, beside, clips, stage
from circulant.hw.ctext.value import storage
from circulant.sim.kinds.rnn import Rnn

render = beside(__file__)

clips.register(Rnn, lambda layer: True)


@stage.register
def _(layer: Rnn, unit: Unit, prefix: str, *, foreign: bool) -> Stage:
    pre, state = layer.pre_format, layer.output_format
    of_x, of_h = layer.gates.parts
    tanh_text, _ = table.emit(unit, f"{prefix}_tanh", layer.tanh)
    text = "\n".join([
        product.transform(unit, f"{prefix}_input_spectra", of_x, layer.inputs, foreign=foreign),
        product.transform(unit, f"{prefix}_state_spectra", of_h, layer.hidden),
        product.rows(unit, f"{prefix}_gates", layer.gates), tanh_text,
        render("rnn.c.j2", unit=unit, prefix=prefix, layer=layer, x_type=storage(layer.input_format),
               pre_type=storage(pre), state_type=storage(state))])
    states = Array(storage(state), f"{prefix}_h", layer.hidden)
    work = [product.spectra(of_x, "input_spectra"), product.spectra(of_h, "state_spectra"),
            Array(storage(pre), "gates", layer.gates.rows)]
    return Stage(prefix, f"RNN, {layer.inputs} to {layer.hidden}, blocks of {layer.gates.block_size}", text=text,
                 output=states, states=(states,), work=tuple(work))
