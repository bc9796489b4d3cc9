from functools import partial

import pytest

from circulant.experiment import load
from circulant.sweep.grid import read, shipped
from circulant.sweep.point import Point
from tests.refused import refused

refusal = partial(refused, read)


def test_every_combination_is_a_point(sweep_file):
    sweep = read(sweep_file("block_size = [1, {gru = 8}]\nweight_bits = [6, 8]\nmultipliers = [16, 32]"))
    assert (sweep.name, sweep.measure) == ("tiny", "plan")
    assert [(point.block_size, point.experiment.quantization.weight_bits, point.experiment.hardware.multipliers)
            for point in sweep.points] == [(k, bits, budget) for k in ("1", "gru=8") for bits in (6, 8)
                                           for budget in (16, 32)]
    for point in sweep.points:
        assert point.label == "digits-gru"
        assert point.experiment.model.hidden == 8
        assert point.experiment.quantization.activation_bits == 16, "what a grid leaves out stays as it is"


def test_several_grids(sweep_file):
    sweep = read(sweep_file("block_size = [1]\n[[grid]]\nexperiment = 'digits-gru'\nname = 'other'", "name = 'both'"))
    assert (sweep.name, [point.label for point in sweep.points]) == ("both", ["digits-gru", "other"])
    assert sweep.points[1] == Point("other", load("digits-gru"))


def test_a_table_of_lists_varies_each_matrix(sweep_file):
    sweep = read(sweep_file("block_size = {gru = [4, 8], linear = [1, 2]}\nmultipliers = [16]"))
    assert [point.block_size for point in sweep.points] == [
        "gru=4 linear=1", "gru=4 linear=2", "gru=8 linear=1", "gru=8 linear=2"]


def test_a_sweep_without_a_search_is_of_bounded_size(sweep_file):
    axes = "".join(f"{name} = {list(range(low, high))}\n" for name, low, high in (
        ("weight_bits", 2, 19), ("activation_bits", 4, 25), ("multipliers", 1, 300)))
    assert refusal(sweep_file(axes)).endswith('a sweep without a search must have at most 100,000 points, but the '
                                              'grids make 106,743; give shorter lists, or search = "tpe"')
    sweep = read(sweep_file(axes, 'search = "tpe"'))
    assert sweep.spaces[0].size == 106_743 and sweep.search.method == "tpe"


def test_what_a_training_and_a_network_depend_on(sweep_file):
    points = read(sweep_file("block_size = [1, 8]\nweight_bits = [6, 8]\nmultipliers = [16, 32]")).points
    assert len({str(point.training) for point in points}) == 2
    assert len({str(point.network) for point in points}) == 4


def test_the_baseline_is_one_for_all_block_sizes(sweep_file):
    path = sweep_file("block_size = [1, 8]\n[[grid]]\nexperiment = 'digits-gru'\nname = 'other'\n"
                      "set = ['training.dense=runs/x']")
    first, second, other = read(path).points
    assert first.baseline == second.baseline
    training = first.baseline.experiment.training
    assert (first.baseline.block_size, training.admm_epochs, training.retrain_epochs, training.dense_epochs) == (
        "1", 0, 0, 1)
    assert other.baseline is None, "it is named in the experiment"


def test_an_experiment_is_found_from_the_folder_of_the_sweep(tmp_path, monkeypatch):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "mine.toml").write_text("[model]\nhidden = 24\n")
    (tmp_path / "deep" / "sweep.toml").write_text("[[grid]]\nexperiment = 'mine.toml'\n")
    monkeypatch.chdir(tmp_path)
    point, = read("deep/sweep.toml").points
    assert (point.label, point.experiment.model.hidden) == ("mine", 24)


@pytest.mark.parametrize("name", shipped())
def test_shipped_sweeps_are_legal(name):
    assert read(name).name == name


def test_the_recurrent_sweep_is_the_one_that_was_asked_for():
    points = read("recurrent").points
    assert len(points) >= 60
    sizes = {name: {point.block_size for point in points if point.experiment.data.name == name}
             for name in ("digits", "fsdd")}
    assert sizes == {"digits": {"1", "2", "4", "8", "16"}, "fsdd": {"1", "4", "8", "16"}}


@pytest.mark.parametrize(("axes", "head", "words"), [
    ("blok_size = [1]", "", "[[grid]] 1: there is no key 'blok_size'; did you mean 'block_size'?"),
    ("colour = [1]", "", "there is no key 'colour'; the keys are experiment, name, set, block_size, weight_bits, "
                         "activation_bits, multipliers"),
    ("block_size = [1, 12]", "", "each of block_size must be a power of two from 1 to 64, or a table from matrix name "
                                 "to such a number, not 12"),
    ("weight_bits = [1]", "", "each of weight_bits must be an integer from 2 to 18, or a table from matrix name "
                             "to such a number, not 1"),
    ("weight_bits = ['8']", "", "each of weight_bits must be an integer from 2 to 18, or a table from matrix name "
                               "to such a number, not '8'"),
    ("multipliers = []", "", "multipliers must be a list of values, each an integer from 1 to 65536, or 0 for all of "
                             "the device's, not []"),
    ("activation_bits = 16", "", "activation_bits must be a list of values, each an integer from 4 to 24, not 16"),
    ("weight_bits = [8, 9, 8]", "", "weight_bits must have each value once, not [8, 9, 8]"),
    ("name = 3", "", "[[grid]] 1: name must be a string that tells the grid from others, not 3"),
    ("", "mesure = 'plan'", "a sweep has no key 'mesure'; did you mean 'measure'?"),
    ("", "measure = 'guess'", "measure must be one of 'plan', 'verilog', 'simulate', not 'guess'"),
    ("", "name = 'a/b'", "name must be letters, digits, '_', '-' and '.', as it names a folder, not 'a/b'"),
    ("[[grid]]\nexperiment = 'digit-gru'", "", "[[grid]] 2: An experiment must be a shipped one ("),
    ("[[grid]]\nblock_size = [2]", "", "[[grid]] 2: experiment must be a shipped one ("),
    ("[[grid]]\nexperiment = 'digits-gru'\nset = 'a'", "", "set must be a list of strings like \"training.seed=1\", "
                                                          "not 'a'"),
    ("[[grid]]\nexperiment = 'digits-gru'\nset = ['model.hiden=3']", "",
     "[model] has no key 'hiden'; did you mean 'hidden'?"),
    ("block_size = {gru = [4, 12]}", "", "each of block_size.gru must be a power of two from 1 to 64, not 12"),
    ("block_size = {gru = 4}", "", "block_size.gru must be a list of values, each a power of two from 1 to 64, not 4"),
    ("multipliers = {gru = [4]}", "", "multipliers must be a list of values, each an integer from 1 to 65536, or 0 for "
                                      "all of the device's, not {'gru': [4]}"),
    ("block_size = 4", "", "or a table from matrix name to such a number; or a table from matrix name to such a list, "
                           "not 4"),
    ("", "search = 'anneal'", "search.method must be one of 'random', 'nsga2', 'tpe', not 'anneal'"),
    ("", "search = {method = 'tpe', colour = 3}", "[search] has no key 'colour'; its keys are method, points, seed, "
                                                  "objectives, at_most, at_least, storage"),
    ("", "search = {objectives = ['scor']}", "a figure must be one of score, weight_memory_bits, memory_bits, "
                                             "multipliers, cycles_per_step, work, latency_spaced, latency_contiguous, "
                                             "energy, dsps, block_rams, luts, flip_flops, cells_mm2, logic_mm2, "
                                             "inference_nj, rest_uw, cells_mhz, not 'scor'; did you "
                                             "mean 'score'?"),
    ("seed = [0, 1]", "search = 'tpe'",
     "a search must not choose a seed, which would be luck, but the grid 'digits-gru' lists some"),
    ("", "search = {objectives = ['score', 'score']}", "search.objectives must name one figure or several, each once, "
                                                       "not ['score', 'score']"),
    ("", "search = {at_most = {score = 'much'}}", "search.at_most.score must be a number, not 'much'"),
    ("", "search = {at_least = {work = 10}, at_most = {work = 5}}",
     "bounds must leave something, but work is to be at least 10 and at most 5"),
    ("", "search = 'tpe'", "a search must have something to vary, but the grid 'digits-gru' has no list of values"),
    ("weight_bits = [4, 8]", "search = {objectives = ['dsps']}",
     "DSP blocks are known where there is a device, but the experiment of 'digits-gru' has none; give set = "
     '["board.device=NAME"]'),
    ("weight_bits = [4]\n[[grid]]\nexperiment = 'digits-gru'\nweight_bits = [8]", "search = 'random'",
     "each grid of a search must have a name of its own, but 'digits-gru' names several"),
    ("weight_bits = [4]\n[[grid]]\nexperiment = 'digits-gru'\nname = 'b'\nset = ['hardware.reloadable=true']\n"
     "weight_bits = [8]", "search = {at_most = {memory_bits = 3}}",
     "memory_bits are not predicted for a reloadable design, as that of 'b' is; take weight_memory_bits"),
    ("[[grid]]\nexperiment = 'digits-gru'\n[[grid]]\nexperiment = 'digits-gru'\nweight_bits = [12, 13]", "",
     "every point must be there once, but grids of the name 'digits-gru' share some"),
])
def test_what_is_refused(sweep_file, axes, head, words):
    path = sweep_file(axes, head)
    said = refusal(path)
    assert words in said
    assert all(line.startswith(f"{path}: ") for line in said.splitlines())


def test_all_problems_are_said_at_once(sweep_file):
    said = refusal(sweep_file("blok_size = [1]\nweight_bits = [1, 99]", "mesure = 1"))
    assert len(said.splitlines()) == 4


def test_a_sweep_without_a_grid(tmp_path):
    path = tmp_path / "x.toml"
    for text in ("", "grid = 3", "grid = [3]"):
        path.write_text(text)
        assert "a sweep must have at least one table [[grid]]" in refusal(str(path))


def test_no_toml(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text("[[grid]\n")
    assert refusal(str(path)).startswith(f"{path} must be TOML: ")
    path.write_bytes(b"\xff")
    assert refusal(str(path)).startswith(f"{path} must be TOML in UTF-8, but cannot be read: ")


def test_an_unknown_sweep():
    assert refusal("recurent") == ("A sweep must be a shipped one (recurrent, recurrent-search) or a .toml file, and "
                                   "'recurent' is neither; did you mean 'recurrent'?")


def test_a_problem_of_several_grids_is_said_once(sweep_file):
    grid = "[[grid]]\nexperiment = 'digits-gru'\nset = ['model.hiden=3']\n"
    path = sweep_file("block_size = [1]\n" + 2 * grid + "block_size = [12]\n")
    assert refusal(str(path)).splitlines() == [
        f"{path}: [[grid]] 2, 3: digits-gru: [model] has no key 'hiden'; did you mean 'hidden'?",
        f"{path}: [[grid]] 3: each of block_size must be a power of two from 1 to 64, or a table from matrix name to "
        "such a number, not 12"]
