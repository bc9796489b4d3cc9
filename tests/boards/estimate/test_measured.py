import json
from pathlib import Path

import pytest

from circulant.boards.estimate.measured import TITLES, errors, measured, words
from circulant.hw.plan.families import CLOCK_ERROR, FAMILIES

FOLDER = Path(__file__).parents[3] / "docs/measured"
FIGURES, COSTS = (json.loads((FOLDER / f"{name}.json").read_text("utf-8")) for name in ("estimate", "explore"))


def test_the_errors_are_those_that_were_measured():
    for family in ("xcu", "ecp5"):
        found = measured()[family]
        assert found["designs"] == FIGURES["errors"][family]["designs"] >= 10
        for name in TITLES:
            assert found[name] == pytest.approx(FIGURES["errors"][family][name], abs=5e-4), name
    assert measured()["clock"] == pytest.approx(FIGURES["clock"], abs=5e-4) and FIGURES["clock"]["designs"] >= 10


def test_the_errors_of_the_cost_table_are_those_that_were_measured():
    found, names = measured()["recurrent"], {"dsps": "dsp", "block_rams": "bram", "luts": "lut", "flip_flops": "ff"}
    for name in TITLES:
        its = COSTS["model_errors"][names[name]]
        assert found["designs"] == its["designs"] >= 20
        assert found[name] == pytest.approx({"rms": its["rms"], "worst": its["worst"]}, abs=5e-4), name
    assert errors("ecp5", recurrent=True) == found and errors("ecp5", recurrent=False) == measured()["ecp5"]
    assert errors("gowin", recurrent=True) is None


def test_what_an_estimate_says_holds_all_of_them():
    for family in ("xcu", "ecp5"):
        luts, flip_flops = FAMILIES[family].errors
        assert abs(measured()[family]["luts"]["worst"]) <= luts
        assert abs(measured()[family]["flip_flops"]["worst"]) <= flip_flops
    assert abs(measured()["clock"]["worst"]) <= CLOCK_ERROR


def test_words():
    assert words("ecp5").startswith("errors against Yosys, 24 designs, rms: DSP 0% (worst +0%), block RAM 2% ")
    assert "clock of " in words("ecp5") and "clock of " not in words("xcu")
    assert words("gowin").startswith("no design of this family was measured")
