"""A report says of nothing that it was verified but of what was, byte for byte."""
import json

import numpy as np
import pytest

from circulant.report.report import collect
from circulant.run.integrity import design_hash, network_of, vectors_of
from circulant.run.run_folder import require
from circulant.sim import artifact, design
from circulant.sim.refusal import Refusal
from circulant.sim.vectors import Vectors
from tests.circulant.conftest import contents, make_generated, make_quantized


def rewrite(path, kind, version, change):
    """Change the body of a file, and its hash with it."""
    body = json.loads(path.read_text())
    for name in ("format", "version", "hash"):
        del body[name]
    change(body)
    return artifact.write_json(path, kind, version, body)


def refusal(run):
    with pytest.raises(Refusal) as caught:
        collect(run)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_was_verified_is_reported(finished):
    assert collect(finished)["verification"]["mismatches"] == 0


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b""), lambda path: path.unlink(),
                                    lambda path: path.write_bytes(path.read_bytes()[:-2])],
                         ids=["empty", "missing", "cut"])
@pytest.mark.parametrize(("command", "name"), [
    (command, name) for command in ("simulate", "report") for name in (
        "hardware/top.v", "hardware/gru_weights.hex", "hardware/manifest.json", "vectors.npz")]
    + [("report", "network.json"), ("report", "weights.npz")])
def test_a_file_that_is_missing_or_changed_is_refused(call, finished, command, name, damage):
    damage(finished.path(name))
    before = contents(finished.folder)
    code, out, err = call(command, finished.folder)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert name.rpartition("/")[2] in err
    assert contents(finished.folder) == before


def test_a_design_that_is_certified_anew_was_not_verified(finished):
    """The manifest and its record agree with a top.v that nobody has simulated."""
    finished.path("hardware/top.v").write_text("module circulant_top; wire other; endmodule\n")

    def certify(body):
        body["files"]["top.v"] = design.hashes({"": finished.path("hardware/top.v").read_bytes()})[""]

    sha = rewrite(finished.path("hardware/manifest.json"), design.KIND, design.VERSION, certify)
    assert f"{finished.path('hardware')} must be the design of generation.json beside it" in refusal(finished)
    generation = finished.path("generation.json")
    after = rewrite(generation, "circulant-generation", 1, lambda body: body["hashes"].update(design=sha))
    rewrite(finished.path("verification.json"), "circulant-verification", 1, lambda body: body.update(after=after))
    assert refusal(finished) == (f"{finished.path('verification.json')} must say that it verified the design "
                                 f"{sha[:12]}… beside it, but it does not; run `circulant simulate {finished.folder}` "
                                 "again")


def test_vectors_of_the_same_network_that_are_others(finished):
    path = finished.path("vectors.npz")
    vectors = Vectors.load(path)
    Vectors(vectors.inputs, vectors.outputs ^ 1, vectors.network).save(path)
    assert refusal(finished) == (f"{path} must be the vectors of quantization.json beside it, but they are others; run "
                                 f"`circulant quantize {finished.folder}` again")


def test_a_record_that_does_not_say_what_it_verified(finished):
    rewrite(finished.path("verification.json"), "circulant-verification", 1, lambda body: body.pop("hashes"))
    assert "verification.json" in refusal(finished)


def test_what_belongs_together_is_given(finished):
    quantized, generated = require(finished, "quantize"), require(finished, "generate")
    assert network_of(finished, quantized).hash == vectors_of(finished, quantized).network
    assert design_hash(finished, generated) == generated["hashes"]["design"]


def test_a_network_quantized_anew_is_no_longer_that_of_the_design(finished):
    make_quantized(finished, seed=2)
    assert "must follow quantization.json beside it" in refusal(finished)
    make_generated(finished)
    assert "must follow generation.json beside it" in refusal(finished)


@pytest.mark.parametrize("values", [np.zeros((7, 5, 4)), np.zeros((7, 5, 4), complex), np.full((7, 5, 4), "1"),
                                    np.zeros((7, 5, 4), bool)], ids=["floats", "complex", "texts", "truths"])
def test_vectors_of_anything_but_integers_are_refused(call, finished, values):
    network = Vectors.load(finished.path("vectors.npz")).network
    artifact.write_npz(finished.path("vectors.npz"), Vectors.KIND, Vectors.VERSION,
                       {"inputs": values, "outputs": np.zeros((7, 3), np.int64)}, network=network)
    code, _, err = call("simulate", finished.folder)
    assert code == 2
    assert "The inputs of vectors must be an array of integers of 64 bits or less, not " in err
