"""A fault in the Verilog is traced to the unit, the step and the element that has it."""
import re
from dataclasses import replace

import pytest

from circulant.hw import generate
from circulant.sim.cosim import icarus
from circulant.sim.cosim.build import build
from circulant.sim.cosim.diverge import locate
from circulant.sim.cosim.diverge.taps import UNITS, taps_of
from circulant.sim.cosim.job import Played
from circulant.sim.cosim.judge.check import compare
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.cosim.simulate import drive, job_of
from circulant.sim.cosim.stimuli import Run
from circulant.sim.cosim.toolchain import find
from circulant.sim.quantize.quantize import quantize
from circulant.sim.shape.kinds import leaves
from tests.sim import samples

pytestmark = pytest.mark.skipif(not icarus.available(), reason="Icarus Verilog is not installed")

ALONE = [Run("alone", (2,))]


@pytest.fixture(scope="module")
def gru(tmp_path_factory):
    model = samples.model()
    network = quantize(model, samples.data(model))
    manifest = Manifest.load(generate(network, multipliers=12, objective="throughput").write(
        tmp_path_factory.mktemp("gru") / "design"))
    vectors = network.vectors(samples.data(model)[:3])
    return network, manifest, Played.of(vectors.inputs, vectors.outputs[:, None])


def broken(manifest, folder, module, old, new):
    """The design with one place of a module changed."""
    text = manifest.verilog[0].read_text()
    start = text.index(f"module circulant_layer_{module} (")
    end = text.index("endmodule", start)
    changed, count = re.subn(old, new, text[start:end], count=1)
    assert count == 1, f"{module} must have {old!r}"
    (folder / "top.v").write_text(text[:start] + changed + text[end:])
    return replace(manifest, verilog=(folder / "top.v",))


CHAIN = "gru_engine_array_chain_0"


@pytest.mark.parametrize(("module", "old", "new", "unit", "tensor"), [
    (CHAIN, r"\$signed\(combined_1\) \+ (\d+)'sd\d+", r"$signed(combined_1) + \1'sd900", "accumulator",
     "gru.gates.product"),
    (CHAIN, r"rounded_1 <= ", "rounded_1 <= 77 + ", "pre-activation", "gru.gates.output"),
    ("gru_pointwise_cell_0_sigmoid_z", r"\by <= ", "y <= 1 + ", "gate", "gru.z"),
    ("gru_pointwise_cell_0_tanh_n", r"\by <= ", "y <= 1 + ", "gate", "gru.n"),
    ("gru_pointwise_cell_0", r"\by <= ", "y <= 1 ^ ", "state", "gru.h")], ids=lambda value: str(value)[-16:])
def test_a_planted_fault_is_located(gru, tmp_path, module, old, new, unit, tensor):
    network, manifest, played = gru
    found = locate(broken(manifest, tmp_path, module, old, new), network, played, ALONE, 2, into=tmp_path)
    assert (found.layer, found.unit, found.tensor, found.sequence) == ("gru", unit, tensor, 2)
    width = found.format.width
    assert f"{found.expected & (1 << width) - 1:0{width}b}" in str(found)
    golden = network.traced(played.inputs[2][None])[tensor].integers[0, found.step].reshape(-1)
    assert golden[found.element] == found.expected != found.got
    assert found.signal.startswith(f"circulant_layer_{module.partition('_cell')[0]}")
    assert found.waves.suffix == ".fst" and found.waves.stat().st_size > 1000


@pytest.mark.soak
@pytest.mark.parametrize(("module", "old", "new", "run", "layer"), [
    ("gru_queue", r"if \(write__en\) storage", "if (1'b1) storage",
     Run("full", tuple(range(20)) * 2, full=400), "last"),
    ("gru_pointwise", r"(\w*valid\w*) <= rst \? 1'b0 : ", r"\1 <= ",
     Run("resets", (2,) * 148, moments=tuple((n, 1) for n in range(2, 150))), "gru")], ids=["full", "resets"])
def test_a_fault_that_only_our_own_program_shows_is_located(gru, tmp_path, module, old, new, run, layer):
    """Of a queue that writes while it is full, and of a reset that comes while a word is under way."""
    network, manifest, _ = gru
    vectors = network.vectors(samples.data(samples.model()))
    played = Played.of(vectors.inputs, vectors.outputs[:, None])
    faulty, tools = broken(manifest, tmp_path, module, old, new), find()
    job = job_of(faulty, (run,), played, None)
    outcome = drive(faulty, tools, build(faulty, tools).folder, job, lambda stage, done, total: None)
    first = compare(job, outcome, faulty.output, played).first
    assert first is not None, outcome.fault
    found = locate(faulty, network, played, [run], first.sequence, into=tmp_path)
    assert (found.layer, found.run, found.sequence) == (layer, run.name, first.sequence), found
    assert found.waves.suffix in (".fst", ".vcd") and found.waves.stat().st_size > 1000


def test_a_right_circuit_has_every_golden_value_on_its_taps(gru):
    """What differs here is what is expected, behind the last tap."""
    network, manifest, played = gru
    wrong = replace(played, outputs=tuple(values + 1 for values in played.outputs))
    assert locate(manifest, network, wrong, ALONE, 2) is None


@pytest.mark.parametrize("model", [samples.model(reset="before"), samples.chain(
    samples.lstm(), samples.lstm(6, 5, projection=3, peephole=True, name="second")),
    samples.chain(samples.bidirectional())], ids=["reset before", "lstm", "both directions"])
def test_names_of_the_verilog_and_of_golden_taps_agree(model, tmp_path):
    network = quantize(model, samples.data(model))
    manifest = Manifest.load(generate(network, multipliers=24, max_steps=8, objective="throughput").write(
        tmp_path / "design"))
    vectors = network.vectors(samples.data(model)[:3])
    outputs = vectors.outputs if vectors.outputs.ndim == 3 else vectors.outputs[:, None]
    played = Played.of(vectors.inputs, outputs + 1)
    assert locate(manifest, network, played, ALONE, 2) is None
    taps = taps_of([layer.name for layer in leaves(network.layers)], network.traced(vectors.inputs[:1]),
                   manifest.verilog[0].read_text())
    for layer in leaves(network.layers):
        if layer.kind in ("gru", "lstm"):
            units = {tap.unit for tap in taps if tap.layer == layer.name}
            assert units >= set(UNITS) - {"input", "output"}, layer.name
