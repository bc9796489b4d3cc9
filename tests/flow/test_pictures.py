import struct

import pytest

from circulant.pictures import draw

REPORT = {"metric": "accuracy", "accuracy": {"dense": 0.98, "circulant": 0.97, "quantized": 0.97},
          "hardware": {"cycles_per_step": 40.0, "floor_cycles": 31, "cycles_per_sequence": 350.0,
                       "floor_cycles_sequence": 260, "multipliers": 64}}
EPOCH = {"loss": 0.5, "accuracy": 0.9, "primal": 0.1, "dual": 0.0}


@pytest.mark.parametrize("phases", [(), ("dense",), ("retrain",), ("dense", "admm", "retrain")])
def test_pictures_of_whatever_was_trained(phases):
    pictures = draw(REPORT, [EPOCH | {"phase": phase} for phase in phases for _ in range(2)])
    assert set(pictures) == {"training", "accuracy", "cycles"}
    for name, png in pictures.items():
        width, height = struct.unpack(">II", png[16:24])
        assert width >= 400 and height >= 200, name


def test_the_same_figures_give_the_same_picture():
    assert draw(REPORT, [EPOCH | {"phase": "dense"}]) == draw(REPORT, [EPOCH | {"phase": "dense"}])
