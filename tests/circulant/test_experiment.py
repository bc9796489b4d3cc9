import os
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path

import pytest

from circulant import experiment
from circulant.experiment import Board, Experiment, Quantization, Training, load, parse, save
from circulant.hardware import Hardware
from circulant.sim.refusal import Refusal
from circulant.sim.settings import keys
from circulant.training.settings import CompressionSettings, ModelSettings, TrainingSettings
from tests.refused import refused

DOCS = Path(__file__).parents[2] / "docs"


refusal = partial(refused, load)


@pytest.fixture
def written(tmp_path):
    def write(text, name="tiny.toml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_the_default_is_shipped():
    assert experiment.DEFAULT in experiment.shipped()
    assert load() == load("digits-gru")
    assert load().name == "digits-gru"


@pytest.mark.parametrize("name", experiment.shipped())
def test_every_shipped_experiment_is_legal(name):
    assert load(name).name == name


def test_the_main_job_is_what_it_says():
    main = load()
    assert (main.data.name, main.model) == ("digits", ModelSettings("gru", 64, 1))
    assert main.compression == CompressionSettings(8)
    assert (main.quantization.weight_bits, main.hardware.multipliers) == (12, 64)


def test_a_file_gives_what_it_names_and_defaults_for_the_rest(written):
    made = load(written("[compression]\nblock_size = 4\n[quantization]\nweight_bits = 9\n"))
    assert made == Experiment("tiny", compression=CompressionSettings(4), quantization=Quantization(weight_bits=9))


def test_a_file_may_name_its_experiment(written):
    assert load(written('name = "other"\n')).name == "other"


@pytest.mark.parametrize("name", ["../up", "", "a b", ".hidden"])
def test_a_name_must_name_a_folder(name):
    with pytest.raises(Refusal, match=r"^experiment: name must be letters, digits, '_', '-' and '\.'"):
        parse({"name": name})


def test_block_sizes_by_matrix(written):
    text = '[compression]\nblock_size = {"gru.weight_hh_l0" = 16, linear = 4}\n'
    assert load(written(text)).compression.block_size == {"gru.weight_hh_l0": 16, "linear": 4}


@pytest.mark.parametrize("original", [
    Experiment(),
    Experiment("other", model=ModelSettings(hidden=24),
               compression=CompressionSettings({"gru.weight_hh_l0": 16, "linear": 1}),
               training=Training(learning_rate=1, seed=7), hardware=Hardware(32), board=Board("XCKU060"))])
def test_written_and_read_again(original, tmp_path):
    save(original, tmp_path)
    assert load(tmp_path) == original


def test_a_written_file_says_what_its_keys_mean(tmp_path):
    save(Experiment(), tmp_path)
    assert "weight_bits = 12 # bits of the weights' spectra" in (tmp_path / "experiment.toml").read_text()


@pytest.mark.parametrize(("override", "table", "key", "value"), [
    ("hardware.multipliers=32", "hardware", "multipliers", 32),
    ("training.learning_rate = 1e-3", "training", "learning_rate", 1e-3),
    ("board.device=XCKU060", "board", "device", "XCKU060"),
    ("board.device='XCKU060'", "board", "device", "XCKU060"),
    ("compression.block_size=4", "compression", "block_size", 4),
    ('compression.block_size."gru.weight_hh_l0"=16', "compression", "block_size", {"gru.weight_hh_l0": 16}),
    ("compression.block_size={linear=2}", "compression", "block_size", {"linear": 2}),
])
def test_overrides(override, table, key, value):
    assert getattr(getattr(load("digits-gru", [override]), table), key) == value


def test_later_overrides_win():
    made = load("digits-gru", ["hardware.multipliers=32", "model.hidden=16", "hardware.multipliers=33"])
    assert (made.hardware.multipliers, made.model.hidden) == (33, 16)


@pytest.mark.parametrize("override", ["hardware.chips={}", "hardware={}"])
def test_an_empty_table_clears(override):
    assert load("two-chips-digits").hardware.several
    assert load("two-chips-digits", [override]).hardware.several is None
    given = ["hardware.chips.count=3", override, "hardware.chips={count=2, multipliers=9}"]
    assert load("two-chips-digits", given).hardware.chips == {"count": 2, "multipliers": 9}


@pytest.mark.parametrize("override", ["hardware.multipliers", "=3", "name=x", "multipliers=3", "a.b=1\nc.d=2", "a b=3"])
def test_malformed_overrides(override):
    assert refusal("digits-gru", [override]) == (
        f"--set takes table.key=value, for instance hardware.multipliers=32, not {override!r}")


@pytest.mark.parametrize(("override", "sentence"), [
    ("hardware.mutipliers=3", "[hardware] has no key 'mutipliers'; did you mean 'multipliers'?"),
    ("hardwar.multipliers=3", "there is no table [hardwar]; did you mean 'hardware'?"),
    ("model.hidden=many", "model.hidden must be an integer from 1 to 4096, not 'many'"),
    ("quantization.weight_bits=19", "quantization.weight_bits must be an integer from 2 to 18, or a table from "
                                    "matrix name to such a number, not 19"),
    ("compression.block_size=12", "compression.block_size must be a power of two from 1 to 64, or a table from matrix "
                                  "name to such a number, not 12"),
    ("data.name=digit", "data.name must be one of 'digits', 'mnist', 'cifar10', 'fsdd', 'speechocean762', 'timit', "
                        "'npz', 'python', 'saved', not 'digit'; did you mean 'digits'?"),
])
def test_illegal_overrides(override, sentence):
    said = f" with {override}" if sentence.startswith(override.partition("=")[0]) else ""  # Else it names the key.
    assert refusal("digits-gru", [override]) == f"digits-gru{said}: {sentence}"


def test_an_illegal_value_is_blamed_on_the_override_or_on_the_file(written):
    path = written("[training]\nrho = -1\nlearning_rate = -1\n")
    given = ["training.learning_rate=-2", "training.learning_rate=-3", "compression.block_size.gru=3"]
    assert [line.partition(": ")[0] for line in refusal(path, given).splitlines()] == [
        f"{path} with compression.block_size.gru=3", f"{path} with training.learning_rate=-3", f"{path}"]


def test_unknown_experiment_names_the_nearest():
    shipped = ", ".join(experiment.shipped())
    assert refusal("digit-gru") == (f"An experiment must be a shipped one ({shipped}), a .toml file or a run folder, "
                                    "not 'digit-gru'; did you mean 'digits-gru'?")


def test_all_problems_of_a_file_at_once(written):
    path = written('[modle]\nhidden = 3\n[training]\ndense_epoch = 1\nseed = -1\n[compression]\nblock_size = 6\n')
    assert refusal(path).split("\n") == [
        f"{path}: there is no table [modle]; did you mean 'model'?",
        f"{path}: compression.block_size must be a power of two from 1 to 64, or a table from matrix name to such a "
        "number, not 6",
        f"{path}: [training] has no key 'dense_epoch'; did you mean 'dense_epochs'?",
        f"{path}: training.seed must be an integer from 0 to 2147483647, not -1"]


def test_broken_toml_names_the_line(written):
    path = written("[model]\nhidden = = 3\n")
    assert refusal(path).startswith(f"{path} must be TOML: ")
    assert "line 2" in refusal(path)


@pytest.mark.parametrize(("text", "why"), [
    (f"[hardware]\nmultipliers = {'9' * 60_000}", "an integer has too many digits"),
    (f"[hardware]\nmultipliers = 0x{'f' * 60_000}", "an integer must fit 64 bits"),
    (f"[data]\narguments = {{a = [1, {1 << 63}]}}", "an integer must fit 64 bits"),
    (f"x = {'[' * 9_000}{']' * 9_000}", "it has too many brackets within each other")])
def test_what_no_toml_says(written, text, why):
    path = written(text)
    assert refusal(path) == f"{path} must be TOML: {why}"


def test_a_long_value_is_not_repeated():
    for long in ("9" * 60_000, "0x" + "f" * 60_000, "x" * 60_000):
        with pytest.raises(Refusal, match=r": hardware.multipliers must be an integer") as no:
            experiment.load("digits-gru", [f"hardware.multipliers={long}"])
        assert len(str(no.value)) < 500


def test_an_integer_beyond_any_number():
    with pytest.raises(Refusal, match=r"training.learning_rate must be a number .*, not an integer of 3,322 bits$"):
        experiment.parse({"training": {"learning_rate": 10**1000}})


def test_many_problems_are_few_lines(written):
    path = written("".join(f"[t{n}]\n" for n in range(50_000)))
    lines = refusal(path).split("\n")
    assert (len(lines), lines[-1]) == (21, "and 49,980 more like these")
    assert lines[0].startswith(f"{path}: there is no table [t0]; ")


def test_a_key_where_a_table_belongs(written):
    path = written("model = 3\n")
    assert refusal(path) == f"{path}: [model] must be a table of keys, not 3"


def test_no_utf8(tmp_path):
    path = tmp_path / "x.toml"
    path.write_bytes(b"\xff\xfe")
    assert refusal(path).startswith(f"{path} must be TOML in UTF-8: ")


def test_a_folder_that_is_no_run_folder(tmp_path):
    assert refusal(tmp_path) == (f"{tmp_path} is no run folder, experiment.toml is missing in it; "
                                 f"run `circulant train EXPERIMENT --out {tmp_path}` first")


@pytest.mark.parametrize("name", ["none", "digits-gru"])
def test_a_run_folder_that_is_not_there(tmp_path, name):
    folder = tmp_path / name
    assert refusal(folder) == (f"A run folder must exist, but there is no {folder}; run `circulant train EXPERIMENT "
                               f"--out {folder}` first, or give another one")


def test_the_reference_in_the_docs_is_that_of_the_dataclasses():
    text = (DOCS / "experiment.md").read_text("utf-8")
    assert experiment.reference() in text, "docs/experiment.md is stale: put circulant.experiment.reference() in"


def test_quantization_is_what_sim_takes():
    from circulant.run.quantization import widths
    from circulant.sim.passes.bitwidths import RULES, Widths

    assert widths(asdict(Quantization())) == Widths()
    limits = {field.name: (field.metadata["key"].low, field.metadata["key"].high) for field in fields(Quantization)}
    assert {name: limits[name] for name in RULES if name in limits} == {
        name: limit for name, limit in RULES.items() if not name.endswith("_clip")}


def test_training_is_what_training_takes():
    assert keys(Training).keys() == {*keys(TrainingSettings), "dense"}, "the baseline is found in its folder"


def test_hardware_is_what_hw_takes():
    import inspect

    from circulant import hw

    options = {name: parameter.default for name, parameter in inspect.signature(hw.generate).parameters.items()
               if name != "network"}
    known = {field.name: field.default for field in fields(Hardware) if field.name != "chips"}
    assert known == options | {"clock_mhz": 0, "family": "auto", "library": "none", "latency_us": 0.0}, (
            "of a clock levels and cycles are made, of a device its family; cells come after the design")


@pytest.mark.parametrize("text", ["a = " + "9" * 5000, "a = " + "[" * 100_000, "a = " + "{a=" * 3000])
def test_toml_that_python_cannot_read_is_refused(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    assert refusal(path).startswith(f"{path} must be TOML: ")


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/dev/zero", path),
                                  lambda path: (path.touch(), os.truncate(path, 1 << 40))])
def test_what_is_no_file_is_refused_unread(tmp_path, make):
    make(path := tmp_path / "mine.toml")
    assert refusal(path).startswith(f"{path} cannot be read: it ")


def test_an_override_that_python_cannot_read_is_text_or_refused():
    assert "hardware.multipliers must be" in refusal("digits-gru", ["hardware.multipliers=" + "9" * 5000])
