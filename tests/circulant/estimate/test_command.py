import json

import pytest

from circulant.hw import generate
from circulant.sim.files.writing import atomic_text
from tests.circulant.conftest import small_network


@pytest.fixture
def quantized(tmp_path):
    """A run folder with a network alone."""
    folder = tmp_path / "runs/small"
    folder.mkdir(parents=True)
    small_network()[0].save(folder)
    atomic_text(folder / "experiment.toml",
                         'name = "small"\n[hardware]\nmultipliers = 16\nobjective = "throughput"\n')
    return folder


def test_a_run_that_fits(call, quantized):
    code, out, err = call("estimate", quantized, "--device", "lfe5u-25f".upper())
    assert (code, err) == (0, "")
    assert out.startswith("LFE5U-25F (ECP5), hardware.family = ecp5: ") and "errors against Yosys" in out
    code, out, _ = call("estimate", quantized, "--device", "LFE5U-25F", "--json")
    found = json.loads(out)
    assert code == 0 and found["fits"] and found["changes"] == [] and found["estimate"]["multipliers"] <= 16


def test_a_run_that_does_not_fit_is_told_the_ways_out(call, quantized):
    code, out, _ = call("estimate", quantized, "--device", "iCE40UP5K", "--json")
    found = json.loads(out)
    assert code == 2 and not found["fits"] and found["estimate"]["shortages"]
    assert found["changes"] and all(each["estimate"]["fits"] for each in found["changes"])
    text = call("estimate", quantized, "--device", "iCE40UP5K")[1]
    assert "It does not fit. The smallest change of each setting with which it fits:" in text and "too many" in text


def test_cycles_need_no_device(call, quantized):
    code, out, err = call("estimate", quantized, "--json")
    assert (code, err) == (0, "")
    made = generate(small_network()[0], multipliers=16, objective="throughput").figures
    assert json.loads(out)["estimate"] == {**made.as_json(), "cycles": made.cycles}
    text = call("estimate", quantized)[1]
    assert f"  period               {made.cycles:g} cycles, {made.cycles / 100:.3g} µs at 100 MHz\n" in text
    assert f"latency, spaced      {made.latency_spaced:g} cycles" in text and "name a --device" in text


def test_a_latency_is_asked_for_in_microseconds(call, quantized):
    asked = ["--device", "LFE5U-85F", "--set", "hardware.objective=latency", "--set"]
    code, out, err = call("estimate", quantized, *asked, "hardware.latency_us=2", "--json")
    found = json.loads(out)["estimate"]
    assert (code, err, found["latency_asked"]) == (0, "", 218) and found["latency_spaced"] <= 218
    assert "  latency asked      at most 218 cycles, about " in call("estimate", quantized, *asked,
                                                                   "hardware.latency_us=2")[1]
    code, out, err = call("estimate", quantized, *asked, "hardware.latency_us=0.1")
    assert (code, out) == (2, "") and f"the nearest plan takes {found['latency_spaced']}, " in out + err


@pytest.mark.parametrize(("arguments", "words"), [
    (["--multipliers", "0"], "hardware.multipliers may be 0 (all of the device's) only if board.device names a device"),
    (["--device", "LFE5U-26F"], "A device must be one of "),
    (["--device", "LFE5U-25F", "--set", "model.hidden=4"], "is quantized already, and model.hidden=4 would change it"),
    (["--device", "LFE5U-25F", "--set", "hardware.mhz=4"], "[hardware] has no key 'mhz'"),
])
def test_refusals(call, quantized, arguments, words):
    code, out, err = call("estimate", quantized, *arguments)
    assert (code, out) == (2, "") and words.format(folder=quantized) in err


def test_too_few_multipliers_for_any_plan(call, quantized):
    code, out, err = call("estimate", quantized, "--device", "LFE5U-25F", "--multipliers", "1")
    assert (code, out) == (2, "") and "needs at least" in err and "raise hardware.multipliers" in err


def test_a_damaged_network_is_refused(call, quantized):
    (quantized / "weights.npz").write_bytes(b"PK")
    code, _, err = call("estimate", quantized, "--device", "LFE5U-25F")
    assert code == 2 and "weights.npz" in err
