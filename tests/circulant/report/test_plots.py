import struct

import pytest

from circulant.report.plots import _cycles, _stages, _training, draw

REPORT = {"metric": "accuracy", "accuracy": {"dense": 0.98, "circulant": 0.97, "quantized": 0.97},
          "compression": {"ratio": 8.0},
          "hardware": {"cycles_per_step": 40.0, "floor_cycles": 31, "cycles_per_sequence": 350.0,
                       "floor_cycles_sequence": 260, "multipliers": 64}}
EPOCH = {"loss": 0.5, "accuracy": 0.9, "primal": 0.1, "dual": 0.0}


@pytest.mark.parametrize("phases", [(), ("dense",), ("retrain",), ("dense", "admm", "retrain")])
def test_pictures_of_whatever_was_trained(phases):
    pictures = draw(REPORT, [EPOCH | {"phase": phase} for phase in phases for _ in range(2)])
    assert set(pictures) == {"accuracy", "cycles", *(["training"] if phases else [])}
    for name, png in pictures.items():
        width, height = struct.unpack(">II", png[16:24])
        assert width >= 400 and height >= 200, name


def test_residuals_are_drawn_where_admm_ran():
    admm, direct = ([EPOCH | {"phase": "admm"}], [{"phase": "direct", "loss": 0.5}])
    assert [len(_training(history, "accuracy").axes) for history in (admm, direct)] == [3, 2]


def test_a_model_without_blocks_is_not_called_block_circulant():
    names = [[each.get_text() for each in _stages(REPORT | {"compression": {"ratio": ratio}}).axes[0].get_xticklabels()]
             for ratio in (8.0, 1.0)]
    assert names == [["dense", "block-circulant", "quantized"], ["dense", "floating point", "quantized"]]


@pytest.mark.parametrize(("least", "ticks"), [
    (0.98, [f"{tick}%" for tick in range(90, 101)]),
    (0.86, ["80%", "85%", "90%", "95%", "100%"])])
def test_ticks_of_an_accuracy_are_even_and_end_at_100(least, ticks):
    axes = _stages(REPORT | {"accuracy": {"dense": 0.99, "circulant": least}}).axes[0]
    axes.figure.canvas.draw()
    assert [each.get_text() for each in axes.get_yticklabels()] == ticks


def test_cycles_are_whole_numbers_however_many():
    axes = _cycles(REPORT | {"hardware": REPORT["hardware"] | {"cycles_per_sequence": 11520.0}}).axes[0]
    assert "11,520" in [each.get_text() for each in axes.texts]


def test_the_same_figures_give_the_same_picture():
    assert draw(REPORT, [EPOCH | {"phase": "dense"}]) == draw(REPORT, [EPOCH | {"phase": "dense"}])


def test_ranges_have_a_picture_where_there_are_some():
    tensor = {"name": "gru.h", "format": {"width": 8, "frac": 7}, "worst": 1.0, "count": 10,
              "bits": [1, 0, 0, 2, 3, 4, 0, 0]}
    beyond = tensor | {"name": "gru.gates.sums", "format": {"width": 12, "frac": 3}, "worst": 1e9,
                       "bits": [0] * 11 + [10]}
    few, many = (struct.unpack(">II", draw(REPORT | {"ranges": ranges}, [])["ranges"][16:24])
                 for ranges in ([tensor, beyond], 10 * [tensor, beyond]))
    assert many[0] == few[0] and many[1] > few[1] > 100


def test_a_schedule_has_a_picture_where_a_layer_has_a_chart():
    from tests.circulant.conftest import LAYERS

    assert "schedule" not in draw(REPORT | {"hardware": REPORT["hardware"] | {"layers": LAYERS[1:]}}, [])
    found = draw(REPORT | {"hardware": REPORT["hardware"] | {"layers": LAYERS}}, [])["schedule"]
    assert found.startswith(b"\x89PNG")
