import dataclasses
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from circulant.hw.c import design, generate_c
from circulant.sim.files.files import sha256
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal
from circulant.sim.vectors import Vectors
from tests.hw.c.conftest import STRICT
from tests.hw.c.networks import WIDE, directions, held, images, inputs, maps, over_time, plain, sequences, sums, vectors
from tests.hw.golden import network
from tests.random_networks import Random

NETWORKS = {
    "small": network(4, 6, 3, outputs=5, k_out=2),
    "rows": network(4, 10, 3, outputs=5, weight_bits=3, weight_scale="row"),
    "steps": network(8, 10, 9, returns="sequence"),
    "chain": sequences(1, (16, "before"), (8, "lstm peephole projection"), 32, outputs=7, outputs_k=4),
    "vectors": vectors(),
    "choice": vectors().with_argmax(),
    "mean": over_time("mean"),
    "maximum": over_time("max"),
    "plain": plain(),
    "sums": sums(),
    "maps": maps(),
    "images": images(1),
    "directions": directions("sequence"),
    "both ends": directions("last"),
    "held": held("steps"),
    "rows of pixels": held("pixels"),
    "pools": images(5),
    "wide": sequences(8, (16, "lstm peephole projection"), outputs=3, outputs_k=64, widths=WIDE, seed=3),
}


def put(net, tmp_path):
    return generate_c(net).write(tmp_path / "c")


@pytest.mark.parametrize("net", NETWORKS.values(), ids=NETWORKS)
def test_the_self_test_passes_with_warnings_as_errors(net, tmp_path, make):
    status, out = make(put(net, tmp_path), "test", "CFLAGS=-O1")
    assert status == 0, out
    assert re.search(r"^PASS: 8 of 8 (sequences|vectors) equal the golden model$", out, re.MULTILINE)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("net", NETWORKS.values(), ids=NETWORKS)
def test_sanitizers_find_nothing(net, rows, tmp_path, make):
    folder = put(net, tmp_path)
    name = json.loads((folder / "manifest.json").read_text())["name"]
    status, out = make(folder, "sanitize", f"CFLAGS=-O0 -D{name.upper()}_ROWS={rows}")
    assert (status, "PASS: 8 of 8" in out) == (0, True), out


@pytest.mark.parametrize("name", ["chain", "wide"])
def test_rows_side_by_side_are_vectorised(name, tmp_path, make):
    folder = put(NETWORKS[name], tmp_path)
    code = (folder / f"{json.loads((folder / 'manifest.json').read_text())['name']}.c").read_text()
    assert "defined(__AVX2__)" in code and "#define ROWS " in code
    if "avx2" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("the processor must have AVX2 for this test")
    status, out = make(folder, "test", "CFLAGS=-O3 -march=x86-64-v3")
    assert (status, "PASS: 8 of 8" in out) == (0, True), out


@pytest.mark.parametrize("name", ["chain", "wide"])
def test_on_32_bit_arm(name, tmp_path, make):
    status, out = make(put(NETWORKS[name], tmp_path), "arm", needs=("make", "arm-linux-gnueabihf-gcc", "qemu-arm"))
    assert (status, "PASS: 8 of 8" in out) == (0, True), out


@pytest.mark.parametrize("name", ["chain", "wide", "directions", "images", "held"])
def test_on_a_cortex_m4(name, tmp_path, make):
    """Saturation by one instruction, and 64-bit sums by another, in 32-bit code without an operating system."""
    status, out = make(put(NETWORKS[name], tmp_path), "cortex-m", needs=("make", "arm-none-eabi-gcc",
                                                                          "qemu-system-arm"))
    assert (status, "PASS: 8 of 8" in out) == (0, True), out


def test_the_self_test_fails_on_a_cortex_m4(tmp_path, make):
    folder = put(NETWORKS["small"], tmp_path)
    (folder / "small.c").write_text((folder / "small.c").read_text().replace("_ssat(x, bits)", "_ssat(x, 7)"))
    status, out = make(folder, "cortex-m", needs=("make", "arm-none-eabi-gcc", "qemu-system-arm"))
    assert (status != 0, "of 8 sequences equal the golden model" in out) == (True, True), out


def test_with_clang(tmp_path, make):
    status, out = make(put(NETWORKS["chain"], tmp_path), "test", "all", "CC=clang", needs=("make", "clang"))
    assert (status, "PASS: 8 of 8" in out) == (0, True), out


def test_the_library_alone_compiles_from_any_folder(tmp_path):
    folder = generate_c(NETWORKS["small"]).write(tmp_path / "c")
    subprocess.run(["gcc", *STRICT, "-fsyntax-only", folder / "small.c"], cwd=tmp_path, check=True)
    assert make_targets(folder) >= {"all", "test", "arm", "cortex-m", "sanitize", "clean"}


def make_targets(folder):
    return set(re.findall(r"^([\w-]+):", (folder / "Makefile").read_text(), re.MULTILINE))


def test_the_self_test_finds_a_changed_weight(tmp_path, make):
    folder = put(NETWORKS["small"], tmp_path)
    code = (folder / "small.c").read_text()
    bias = re.search(r"out_product_bias\[\d+\] = \{\n    (-?\d+),", code)
    (folder / "small.c").write_text(code[:bias.start(1)] + str(int(bias[1]) ^ 64) + code[bias.end(1):])
    status, out = make(folder, "test", "CFLAGS=-O0")
    assert status != 0
    assert re.search(r"^sequence 0, run: output 0 must be -?\d+, not -?\d+$", out, re.MULTILINE)
    assert re.search(r"^FAIL: \d of 8 sequences equal the golden model$", out, re.MULTILINE)


def test_state_is_kept_across_calls(compiled):
    net = NETWORKS["chain"]
    plain = compiled(generate_c(net))
    state = plain.state()
    for x in inputs(net, count=3, steps=6, seed=1):
        plain.call("reset", state)
        for t, vector in enumerate(x):
            if t % 2:
                assert plain.step(state, vector, wanted=False) is None
            else:
                copy = state.copy()
                found = plain.step(state, vector)
                assert found.tolist() == net.run_integers(x[None, :t + 1])[0].tolist()
                assert plain.step(copy, vector).tolist() == found.tolist()
        assert plain.run(state, x)[0].tolist() == net.run_integers(x[None])[0].tolist()


def test_an_output_for_each_step(compiled):
    net = sequences(8, (4, "before"), (2, "lstm projection"), returns="sequence", outputs=3)
    plain = compiled(generate_c(net))
    state, (x, *_) = plain.state(), inputs(net, count=6, steps=5)
    plain.call("reset", state)
    expected = net.run_integers(x[None])[0].tolist()
    assert [plain.step(state, vector).tolist() for vector in x] == expected
    assert plain.run(state, x, len(x)).tolist() == expected


def test_an_empty_sequence_gives_what_the_zero_state_gives(compiled):
    net = NETWORKS["small"]
    plain, (gru, out) = compiled(generate_c(net)), net.stages
    zero = out(np.zeros((1, gru.hidden), np.int64))[0]
    assert plain.run(plain.state(), np.zeros((0, net.flow.size)))[0].tolist() == zero.tolist()


def test_inputs_beyond_the_format_are_clipped(compiled):
    net = network(4, 6, 3, activation_bits=9)
    plain, form = compiled(generate_c(net)), net.input_format
    x = np.random.default_rng(0).integers(-2**15, 2**15, (4, net.flow.size))
    assert plain.run(plain.state(), x)[0].tolist() == net.run_integers(np.clip(x, form.lo, form.hi)[None])[0].tolist()


@pytest.mark.parametrize("kind", ["activation", "scale", "norm", "taps", "decay"])
def test_what_clips_nothing_itself_takes_clipped_inputs(kind, compiled):
    """Else tables would be read beyond their ends."""
    r = Random(4)
    first = {"activation": lambda: r.activation("first", 5, "tanh"), "scale": lambda: r.scale("first", 5),
             "norm": lambda: r.norm("first", 5), "taps": lambda: r.taps("first", 5, 2),
             "decay": lambda: r.decay("first", 5)}[kind]()
    net = r.network([first, r.linear("out", first.outputs, 3, 1)], 5, sequence=True, activation_bits=9)
    plain, form = compiled(generate_c(net)), net.input_format
    x = np.random.default_rng(0).integers(-2**15, 2**15, (4, 5))
    assert plain.run(plain.state(), x, 4).tolist() == net.run_integers(
        np.clip(x, form.lo, form.hi)[None])[0].tolist()


@pytest.mark.parametrize("net", [maps(), images(2)], ids=["depthwise", "conv"])
def test_pixels_beyond_the_format_are_clipped(net, compiled):
    plain, form = compiled(generate_c(net)), net.input_format
    x = np.random.default_rng(0).integers(-2**15, 2**15, (1, *net.flow.grid, net.flow.size)).astype(plain.input)
    y = np.empty(net.end.values, plain.output)
    plain.call("run", plain.state(), x, y)
    assert y.tolist() == net.run_integers(np.clip(x, form.lo, form.hi).astype(np.int64))[0].ravel().tolist()


def test_the_self_test_of_images_holds_them_pixel_by_pixel():
    net = NETWORKS["maps"]
    made = net.vectors(np.moveaxis(net.input_format.real(inputs(net, 3)), -1, 1))
    assert made.inputs.ndim == 3, "else it says nothing"
    text = generate_c(net, made).files["test.c"]
    first = text.partition("inputs[COUNT]")[2].partition("{")[2].partition("}")[0]
    assert [int(each) for each in re.findall(r"-?\d+", first)] == made.inputs[0].ravel().tolist()
    assert "#define COUNT 3\n" in text


def test_the_self_test_is_made_of_the_vectors():
    net = NETWORKS["small"]
    given = net.vectors(np.random.default_rng(0).normal(0, 1, (3, 2, 3)))
    text = generate_c(net, given).files["test.c"]
    assert "#define COUNT 3\n#define STEPS 2\n" in text
    assert ", ".join(map(str, given.inputs[1].ravel().tolist())) in text


@pytest.mark.parametrize(("most", "count"), [(96, 3), (95, 2), (1, 1)])
def test_long_sequences_make_a_short_self_test(monkeypatch, most, count):
    monkeypatch.setattr(design, "TEST_VALUES", most)
    net = NETWORKS["small"]
    given = net.vectors(np.zeros((9, 9, 3)))  # 9 · 3 + 5 integers each
    assert f"#define COUNT {count}\n#define STEPS 9\n" in generate_c(net, given).files["test.c"]


@pytest.mark.parametrize("name", ["small", "steps"])
def test_a_self_test_of_sequences_of_different_lengths(name, tmp_path, make):
    net, lengths = NETWORKS[name], [2, 5, 1, 3]
    x = np.random.default_rng(0).normal(0, 1, (4, 6, net.flow.size))
    folder = generate_c(net, net.vectors(x, lengths=lengths)).write(tmp_path / "c")
    text = (folder / "test.c").read_text()
    assert "static const int steps[COUNT] = {2, 5, 1, 3};" in text
    status, out = make(folder, "sanitize", "CFLAGS=-O0")
    assert (status, "PASS: 4 of 4" in out) == (0, True), out
    status, out = make(generate_c(net, net.vectors(x)).write(tmp_path / "c"), "test", "CFLAGS=-O0")
    assert (status, "PASS: 4 of 4" in out) == (0, True), out
    (folder / "test.c").write_text(text.replace("{2, 5, 1, 3}", "{2, 5, 2, 3}"))
    assert make(folder, "test", "CFLAGS=-O0")[0] != 0, "a step more is another sequence"


def test_a_ragged_network_tests_itself_at_different_lengths():
    text = generate_c(dataclasses.replace(NETWORKS["small"], ragged=True)).files["test.c"]
    assert "static const int steps[COUNT] = {1, 2, 3, 4, 5, 6, 1, 2};" in text


def test_refuses_vectors():
    net = NETWORKS["small"]
    x, y = np.zeros((2, 1, 3), np.int64), np.zeros((2, 5), np.int64)
    with pytest.raises(Refusal, match=r"^The vectors must be those of network 'small', but they are another network's; "
                                      r"make them again with Network\.vectors$"):
        generate_c(net, Vectors(x, y, "another"))
    with pytest.raises(Refusal, match=r"^The vectors of a self-test must hold at least one step, but they are empty; "):
        generate_c(net, Vectors(x[:0], y[:0], net.hash))


def test_the_text_is_the_same_each_time():
    first, second = generate_c(NETWORKS["small"]), generate_c(NETWORKS["small"])
    assert first.files == second.files
    assert first.manifest == second.manifest


def test_the_manifest_says_what_there_is(tmp_path):
    net = NETWORKS["small"]
    made = generate_c(net)
    folder = made.write(tmp_path / "new" / "c")
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["format"] == "circulant-c-design"
    assert manifest["network"] == net.hash
    assert manifest["input"] == {"format": net.input_format.as_json(), "elements": 3, "type": "int16_t"}
    assert manifest["output"]["per"] == "sequence"
    assert sorted([*manifest["files"], "manifest.json"]) == sorted(path.name for path in folder.iterdir())
    assert manifest["files"] == {name: sha256(folder / name) for name in manifest["files"]}
    assert made.table_bytes == manifest["table_bytes"] == sum(
        int(bits) // 8 * int(count) for bits, count in re.findall(
            r"static const (?:ENTRY\()?int(\d+)_t\)? \w+\[(\d+)\] =", made.files["small.c"]))


def test_write_replaces_a_design_and_nothing_else(tmp_path):
    made = generate_c(NETWORKS["small"])
    folder = made.write(tmp_path / "c")
    (folder / "selftest").touch()
    made.write(folder)
    assert not (folder / "selftest").exists()
    other = tmp_path / "other"
    other.mkdir()
    made.write(other)
    shutil.rmtree(other)
    other.mkdir()
    (other / "manifest.json").write_text("{}")
    with pytest.raises(Refusal, match=f"^The folder of a C design must be new, empty or a C design's, but {other} "
                                      "holds other files; choose another one$"):
        made.write(other)
    assert os.listdir(other) == ["manifest.json"]
    assert sorted(os.listdir(tmp_path)) == ["c", "other"]


def test_a_network_called_test_does_not_overwrite_its_self_test():
    net = NETWORKS["small"]
    assert {"network_test.c", "test.c"} <= set(generate_c(Network.chain("test", net.flow.size, True, net.stages)).files)
