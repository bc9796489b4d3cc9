"""Which widths of a layer can be picked, and what a step down changes."""
import pytest

from circulant.sim.quantize.bitwidth_space import FIELDS, clip_of, clips_of, least, searched_bitwidths, step
from circulant.sim.quantize.quantize import quantize
from circulant.sim.refusal import Refusal
from tests.sim import samples

SUMS = ["weight_bits", "spectrum_bits", "product_bits", "output_bits"]


def of(layer, fields=FIELDS):
    model = samples.chain(layer)
    return searched_bitwidths(quantize(model, samples.data(model)), fields)


@pytest.mark.parametrize(("layer", "wanted"), [
    (samples.model(k=(8, 8, 1)).layers[0], [*SUMS, "state_bits", "twiddle_bits"]),
    (samples.lstm(k=4), [*SUMS, "state_bits", "cell_bits"]),
    (samples.bidirectional("lstm", k=4), [*SUMS, "state_bits", "cell_bits"]),
])
def test_a_layer_has_the_widths_of_what_it_computes(layer, wanted):
    """Transforms of four and less only add, and have no twiddles."""
    assert of(layer) == ["input_bits", *(f"{layer.name}.{field}" for field in wanted)]


def test_only_what_is_asked_for():
    assert of(samples.lstm(), ("cell_bits",)) == ["lstm.cell_bits"]
    with pytest.raises(Refusal, match=r"^A kind of width to choose must be one of weight_bits, .*, not "
                                      r"'cell_bit'; did you mean 'cell_bits'\?$"):
        of(samples.lstm(), ("cell_bit",))


def test_a_step_down_takes_a_bit_behind_the_point_or_in_front_of_it():
    assert (clip_of("gru.spectrum_bits"), clip_of("gru.weight_bits")) == ("gru.spectrum_clip", "")
    assert (clips_of("gru.spectrum_bits"), clips_of("gru.spectrum_bits", 1), clips_of("gru.weight_bits")) == (
        (0, 1), (1, 2), (0,))
    assert step("gru.spectrum_bits", 9, 1) == {"gru.spectrum_bits": 9, "gru.spectrum_clip": 1}
    assert step("gru.weight_bits", 9, 0) == {"gru.weight_bits": 9}
    assert least("gru.weight_bits") == 2
