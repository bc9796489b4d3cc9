import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from circulant import hw
from circulant.experiment import Experiment
from circulant.hardware import Hardware
from circulant.hw.reload_words import writes_for
from circulant.run.integrity import design_hash
from circulant.run.reload import reload
from circulant.run.run_folder import Run, record
from circulant.sim import cosim
from circulant.sim.cosim import Exchange, Mismatch
from circulant.sim.golden.network import Network
from circulant.sim.quantize.quantize import quantize
from circulant.sim.refusal import Refusal
from circulant.training.settings import ModelSettings
from tests.circulant.conftest import make_quantized, make_trained
from tests.processes import call
from tests.sim import samples
from tests.sim.samples import rebuilt


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with a reloadable design, and beside it the folder of another network in the same formats."""
    folder = tmp_path_factory.mktemp("reload")
    this = Run(folder / "small", Experiment("small", model=ModelSettings(hidden=8),
                                           hardware=Hardware(40, reloadable=True)))
    make_trained(this)
    made = make_quantized(this)
    network = Network.load(this.folder)
    hw.generate(network, multipliers=40, reloadable=True, objective="throughput").write(this.path("hardware"))
    sha = json.loads(this.path("hardware/manifest.json").read_text())["hash"]
    record(this, "generate", {
        "hashes": {"network": made["hashes"]["network"], "design": sha}, "seconds": 1.0, "hardware": {
            "multipliers": 40, "memory_bits": 1, "multiplications": {"per_step": 1, "per_sequence": 1}}})
    *before, last = network.layers
    turned = replace(last, product=replace(last.product, weights=last.product.weights[:, ::-1]))
    replace(rebuilt(network, *before, turned), name="other").save(folder / "other")
    return this


@pytest.mark.parametrize(("wrong", "code"), [(0, 0), (2, 1)])
def test_the_words_are_kept_with_what_came_of_them(run, monkeypatch, capsys, wrong, code):
    seen = []

    def exchange(folder, network, other, words, inputs, **options):
        seen.append((folder, network.hash, other.name, words, len(inputs)))
        first = Mismatch(0, 0, word=0, expected=1, got=2, run="other network") if wrong else None
        return Exchange(len(words), words_compared=90, mismatches=wrong, first=first, values_compared=30,
                        wrong_values=0, cycles=1000, simulator="Verilator")

    monkeypatch.setattr(cosim, "exchange", exchange)
    other = run.folder.parent / "other"
    assert call("reload", run.folder, "--network", other) == code
    (folder, sha, name, words, count), = seen
    assert (folder, name, count) == (run.path("hardware"), "other", 7)
    kept = np.fromfile(run.path("reload.bin"), "<u4").reshape(-1, 2)
    assert kept.tolist() == [list(pair) for pair in words]
    body = json.loads(run.path("reload.json").read_text())
    assert body["hashes"] == {"network": sha, "other": Network.load(other).hash}
    assert body["exchange"]["words_written"] == len(words)
    assert f"{len(words):,} words" in capsys.readouterr().out


def test_a_design_that_gives_the_class_alone_is_loaded_with_the_choice(run, monkeypatch, tmp_path):
    folder = shutil.copytree(run.folder, tmp_path / "class")
    this = Run(folder, replace(run.experiment, hardware=Hardware(40, reloadable=True, argmax=True)))
    network, other = Network.load(folder), Network.load(run.folder.parent / "other")
    shutil.rmtree(this.path("hardware"))
    hw.generate(network, multipliers=40, reloadable=True, objective="throughput", argmax=True).write(
        this.path("hardware"))
    body = json.loads(this.path("generation.json").read_text())
    record(this, "generate", {"hashes": body["hashes"] | {"design": design_hash(this)}, "seconds": 1.0,
                              "hardware": body["hardware"]})
    seen = []
    monkeypatch.setattr(cosim, "exchange", lambda folder, *networks, **options: seen.append(networks) or Exchange(
        1, words_compared=1, mismatches=0, first=None, values_compared=1, wrong_values=0, cycles=1, simulator="V"))
    reload(this, run.folder.parent / "other")
    (first, second, *_), = seen
    assert (first.hash, second.hash) == (network.with_argmax().hash, other.with_argmax().hash)
    kept = json.loads(this.path("reload.json").read_text())["hashes"]
    assert kept == {"network": network.hash, "other": other.hash}


def test_the_words_belong_to_the_design_as_it_was_generated(run):
    network, other = Network.load(run.folder), Network.load(run.folder.parent / "other")
    words = writes_for(run.path("hardware"), network, other, multipliers=40)
    assert words != writes_for(run.path("hardware"), network, network, multipliers=40)
    for given, multipliers in ((network, 30), (other, 40)):
        with pytest.raises(Refusal, match=rf"must hold the design of network '{given.name}' with {multipliers} "
                                          r"multipliers and 1 streams, but it is another one; generate it again$"):
            writes_for(run.path("hardware"), given, other, multipliers=multipliers)


def test_a_network_of_another_structure_is_refused(run, capsys, tmp_path):
    model = samples.model(4, 8, 3, k=(2, 2, 2))
    quantize(model, samples.data(model)).save(tmp_path / "third")
    assert call("reload", run.folder, "--network", tmp_path / "third") == 2
    assert "must have" in capsys.readouterr().err


def test_the_other_network_has_to_be_named(run, capsys):
    assert call("reload", run.folder) == 2
    assert "--network" in capsys.readouterr().err
