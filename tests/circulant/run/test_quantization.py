import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from rich.console import Console

from circulant import training
from circulant.experiment import Quantization, parse
from circulant.run import quantization
from circulant.sim.passes.bases import matrices
from circulant.sim.quantize import margins
from circulant.sim.refusal import Refusal
from circulant.training.data import Dataset
from circulant.training.data.targets import SETS
from circulant.training.models.models import ModelSettings, build

TABLE = asdict(Quantization(activation_bits=10, weight_bits=8))


def classified():
    """Data that a network without training gets all right."""
    x = np.random.default_rng(0).normal(size=(90, 5, 6)).astype(np.float32)
    model = training.compress(build(ModelSettings(hidden=8), (5, 6), 3, seed=1), {"gru": 4})
    with torch.no_grad():
        y = model(torch.from_numpy(x)).argmax(-1).numpy()
    return model, Dataset("random", x[:60], train_y=y[:60], test_x=x[60:], test_y=y[60:], classes=3)


def transcribed():
    """Sequences of different lengths, of which the network says the first symbols."""
    rng = np.random.default_rng(0)
    x, lengths = rng.normal(size=(24, 8, 6)).astype(np.float32), rng.integers(5, 9, 24)
    model = build(ModelSettings(kind="labeller", hidden=8), (8, 6), 4, seed=1)
    y, symbols = rng.integers(1, 4, (24, 2)), np.full(24, 2)
    y[:, 1] = 1 + y[:, 0] % 3  # Two equal ones would need a blank between them.
    return model, Dataset("phones", train_x=x[:16], train_y=y[:16], test_x=x[16:], test_y=y[16:], classes=4, task="ctc",
                          train_lengths=lengths[:16], test_lengths=lengths[16:], train_target_lengths=symbols[:16],
                          test_target_lengths=symbols[16:])


def predicted(task):
    """Vectors, and what a network predicts of them with some noise: numbers far from 0, or labels."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 6)).astype(np.float32)
    model = training.compress(build(ModelSettings(kind="mlp", hidden=8), (6,), 2, seed=1), {"fc1": 4})
    with torch.no_grad():
        model.linear.bias.copy_(torch.tensor([5.0, -3.0]) if task == "regression" else torch.zeros(2))
        outputs = model(torch.from_numpy(x)).numpy()
    y = outputs + rng.normal(0, 0.02, outputs.shape).astype(np.float32)
    y = y.astype(np.float32) if task == "regression" else (y > 0).astype(np.int64)
    return model, Dataset("predicted", x[:80], y[:80], x[80:], y[80:], task=task)


@pytest.fixture(scope="module")
def data():
    return classified()


def test_a_table_names_layers():
    bits = quantization.widths(TABLE | {"weight_bits": {"gru": 7, "head.product": 5}, "state_bits": {"gru": 9}})
    assert dict(bits.tensors) == {"gru.weight_bits": 7, "head.product.weight_bits": 5, "gru.state_bits": 9}
    assert (bits.weight_bits, bits.activation_bits) == (12, 10)


def test_the_keys_are_read():
    table = parse({"quantization": {"budget": 0.1, "weight_bits": {"gru": 8}, "pick": ["weight_bits"]}}).quantization
    assert (table.budget, table.weight_bits, table.pick) == (0.1, {"gru": 8}, ("weight_bits",))
    with pytest.raises(Refusal, match=r"quantization\.budget must be .*, or 0 for the given bit widths, not "):
        parse({"quantization": {"budget": -1}})


def test_widths_as_they_stand(data):
    made = quantization.golden(*data, TABLE | {"weight_bits": {"gru": 7}}, name="mine")
    assert (made.picking, made.finetuning, made.never, made.network.name) == ({}, {}, [], "mine")
    assert [each.weight.width for layer in made.network.layers for each in matrices(layer).values()] == [7, 7, 12]


def test_formats_are_fitted_to_some_of_the_training_samples(data):
    model, given = data
    loud = given.train_x.copy()
    loud[7] *= 9
    given = replace(given, train_x=loud)
    few = given.train_x[[0, 15, 30, 45]]
    made = quantization.golden(model, given, TABLE | {"calibration": 4})
    alone = quantization.golden(model, replace(given, train_x=few, train_y=given.train_y[:4]), TABLE)
    whole = quantization.golden(model, given, TABLE)
    assert made.network.hash == alone.network.hash != whole.network.hash
    assert quantization.golden(model, given, TABLE | {"calibration": 1000}).network.hash == whole.network.hash


@pytest.mark.parametrize("on", ["test", "train"])
def test_a_budget_is_kept_on_the_part_in_question(data, on, tmp_path):
    model, known = data
    table = TABLE | {"budget": 5.0, "pick_on": on, "pick_by": "metric", "pick": ("weight_bits", "state_bits"),
                     "samples": 0}
    shown = []
    made = quantization.golden(model, known, table, folder=tmp_path, show=lambda *said: shown.append(said[0]))
    x, y = getattr(known, f"{on}_x"), getattr(known, f"{on}_y")
    lost = 100 * float(np.mean(made.network.run(x).integers.argmax(-1) != y))
    assert made.picking["lost"] == pytest.approx(lost)
    assert lost <= 5
    assert made.picking["weight_bits"] < made.picking["weight_bits_start"]
    assert {"calibration", "sensitivity of widths", "path within the budget"} < set(shown)
    again = quantization.golden(model, known, table, folder=tmp_path)
    assert again.network.hash == made.network.hash
    assert again.picking["cached"] == again.picking["evaluations"] > 0, "everything was known"
    json.dumps(made.picking)
    console = Console(width=100, record=True)
    console.print(quantization.picked_table(made.picking))
    text = " ".join(console.export_text().split())
    assert "gru.weight_bits" in text
    assert f" points on the {SETS[on]} (budget 5); weights {made.picking['weight_bits_start']:,}" in text
    best = training.task_of(known).score(made.network.vectors(known.test_x).outputs, known)
    assert (made.picking["score"], made.picking["pick_by"]) == (best, "metric")


def test_by_default_the_test_part_is_not_looked_at(data, tmp_path):
    """Other test samples, of other classes, change no width, and no label does."""
    model, known = data
    table = TABLE | {"budget": 1.0, "pick": ("weight_bits", "state_bits")}
    other = Dataset("other", known.train_x, train_y=2 - known.train_y, test_x=known.test_x[::-1] * 2,
                    test_y=known.test_y, classes=3)
    made, again = (quantization.golden(model, each, table) for each in (known, other))
    assert made.network.hash == again.network.hash
    exact, found = made.model.run(known.train_x), made.network.run(known.train_x).real
    assert made.picking["lost"] == pytest.approx(margins.lost(margins.taken(exact, found)))
    assert 0 < made.picking["lost_start"] < made.picking["lost"] <= 1


def test_margins_of_padded_steps_do_not_count():
    model, known = transcribed()
    made = quantization.golden(model, known, TABLE | {"budget": 2.0, "pick": ("weight_bits",)})
    exact, found = (run(known.train_x, lengths=known.train_lengths) for run in (made.model.run, made.network.run))
    found = found.real
    valid = np.arange(known.train_x.shape[1]) < known.train_lengths[:, None]
    assert not valid.all()
    assert made.picking["lost"] == pytest.approx(margins.lost(margins.taken(exact, found)[valid]))


@pytest.mark.parametrize("task", ["regression", "multi-label"])
@pytest.mark.parametrize("by", ["margins", "metric"])
def test_widths_of_numbers_and_labels(task, by):
    """The budget is of R² or F1; without labels it is estimated from noise, or from the distances from 0."""
    model, known = predicted(task)
    made = quantization.golden(model, known, TABLE | {"budget": 1.0, "pick": ("weight_bits", "output_bits"),
                                                      "pick_by": by, "samples": 0})
    exact, found = made.model.run(known.train_x), made.network.run(known.train_x).real
    if by == "margins":
        wanted = {"regression": margins.added(exact, found), "multi-label": margins.lost(
            margins.taken_labels(exact, found))}[task]
    else:
        measured = training.task_of(known)
        train = replace(known, test_x=known.train_x, test_y=known.train_y)
        wanted = 100 * (measured.score(exact, train) - measured.score(found, train))
    assert made.picking["lost"] == pytest.approx(wanted)
    assert made.picking["lost"] <= 1 and made.picking["weight_bits"] < made.picking["weight_bits_start"]
    assert made.picking["score"] > made.picking["score_start"] - 0.02


def test_numbers_do_not_drift_in_fine_tuning():
    """Two outputs less their mean say too little of a regression: their sum would be free."""
    model, known = predicted("regression")
    rough, tuned = (quantization.golden(model, known, TABLE | {
        "weight_bits": 4, "finetune_epochs": epochs, "finetune_rate": 0.03},
        settings=training.TrainingSettings(batch_size=16)) for epochs in (0, 20))
    distances = [np.square(each.network.run(known.test_x).real - rough.model.run(known.test_x)).sum()
                 for each in (rough, tuned)]
    assert distances[1] < 2 * distances[0]
    assert tuned.finetuning["before"] == quantization.score(rough.network, known)


def test_a_margin_picks_wider_formats(data):
    model, known = data
    table = TABLE | {"budget": 20.0, "pick_by": "metric", "pick": ("weight_bits",)}
    plain, careful = (quantization.golden(model, known, table | {"margin": margin}).picking["weight_bits"]
                      for margin in (1.0, 8.0))
    assert plain < careful


def test_phones_of_sequences_of_different_lengths():
    """The loss is the rise of the phone error rate on the valid steps alone."""
    model, known = transcribed()
    made = quantization.golden(model, known, TABLE | {
        "budget": 3.0, "pick_on": "test", "pick_by": "metric", "pick": ("weight_bits",)})
    task = training.task_of(known)
    rates = [task.score(outputs.astype(np.float32), known) for outputs in (
        made.model.run(known.test_x, lengths=known.test_lengths),
        made.network.run(known.test_x, lengths=known.test_lengths).real)]
    assert made.picking["lost"] == pytest.approx(100 * (rates[1] - rates[0]))
    assert made.picking["lost"] <= 3


def test_fine_tuned_weights_are_those_of_the_network(data):
    model, known = data
    shown = []
    made = quantization.golden(
        model, known, TABLE | {"weight_bits": 4, "finetune_epochs": 2, "joint_epochs": 1, "finetune_rate": 0.03},
        settings=training.TrainingSettings(batch_size=16), show=lambda *said: shown.append(said[:3]))
    plain = quantization.golden(model, known, TABLE | {"weight_bits": 4})
    assert made.finetuning["before"] == training.task_of(known).score(
        plain.network.vectors(known.test_x).outputs, known)
    phases = [said for said in shown if said[0] != "calibration"]
    assert phases == [("ADMM on the grid", 1, 1), ("fine-tuning", 1, 2), ("fine-tuning", 2, 2)]
    for one, other in zip(made.network.layers, plain.network.layers, strict=True):
        for path, product in matrices(one).items():
            assert product.weight == matrices(other)[path].weight, "the format is that which was trained on"
            assert not np.array_equal(product.weights, matrices(other)[path].weights)


def test_a_tensor_that_is_never_exercised_is_named(data):
    model, known = data
    silent = Dataset("silent", known.train_x[:, :1], train_y=known.train_y, test_x=known.test_x[:, :1],
                     test_y=known.test_y, classes=3)
    made = quantization.golden(model, silent, TABLE)
    assert "gru.recurrent_product.input" in made.never
    with pytest.raises(Refusal, match=r"^Calibration data must exercise every tensor whose width is chosen, but gru"):
        quantization.golden(model, silent, TABLE | {"budget": 1.0})


@pytest.mark.parametrize("name", [each for each in TABLE if each.endswith("_bits")])
def test_no_setting_takes_more_than_32_bits(name):
    with pytest.raises(Refusal, match=rf"^experiment: quantization\.{name} must be .*, not 33$"):
        parse({"quantization": {name: 33}})


def test_noise_in_the_fine_tuning_makes_flipped_bits_cost_less():
    model, data = classified()
    own = TABLE | {"finetune_epochs": 30, "finetune_rate": 0.01}
    settings = training.TrainingSettings(batch_size=10)

    def right(network):
        x = network.integers(data.test_x)
        return np.mean([(network.with_faults(network.draw_faults(rate=0.02, seed=seed)).run_integers(x).argmax(-1)
                         == data.test_y).mean() for seed in range(40)])

    torch.manual_seed(0)
    plain = quantization.golden(model, data, own, settings=settings).network
    own |= {"finetune_noise": 0.02, "finetune_clip": 1}
    hard = quantization.golden(model, data, own, settings=settings).network
    assert right(hard) > right(plain) + 0.02
    for (path, one), other in zip(quantization.grids(plain).items(), quantization.grids(hard).values(), strict=True):
        assert (other.form.width, other.form.frac) == (one.form.width, one.form.frac + 1), path


def test_labels_in_the_fine_tuning_mend_what_the_model_does_wrong():
    model, data = classified()
    data = replace(data, train_y=(data.train_y + 1) % 3, test_y=(data.test_y + 1) % 3)

    def right(labels):
        own = TABLE | {"finetune_epochs": 30, "finetune_rate": 0.01, "finetune_labels": labels}
        network = quantization.golden(model, data, own, settings=training.TrainingSettings(batch_size=10)).network
        return (network.run_integers(network.integers(data.test_x)).argmax(-1) == data.test_y).mean()

    assert right(0.9) > right(0.0) + 0.3


@pytest.mark.parametrize("key", ["finetune_noise", "finetune_sensitivity", "finetune_clip", "finetune_labels"])
def test_noise_without_a_fine_tuning_is_refused(key):
    model, data = classified()
    with pytest.raises(Refusal, match=r"finetune_noise, finetune_sensitivity, finetune_clip and finetune_labels need a "
                       r"fine-tuning that they act on, but quantization\.finetune_epochs is 0; give it epochs, or "
                       r"leave them out"):
        quantization.golden(model, data, TABLE | {key: 1})


def test_a_fine_tuning_goes_through_approximate_products_and_keeps_the_formats_that_it_had():
    model, data = classified()
    own = TABLE | {"multiplier": "truncated:6", "weight_bits": 7, "activation_bits": 7}
    tuning = {"finetune_epochs": 6, "finetune_rate": 0.02}
    wanted = model(torch.from_numpy(data.test_x)).detach().numpy()

    def error(network):
        return np.square(network.run(data.test_x).real - wanted).mean()

    plain, made = (quantization.golden(model, data, table, settings=training.TrainingSettings(batch_size=10)).network
                   for table in (own, own | tuning))
    assert made.multiplier == "truncated:6"
    assert error(made) < error(plain) / 2
    for mine, its in zip(made.layers, plain.layers, strict=True):
        assert [(each.spectrum, each.product, each.output) for each in mine.products.values()] == [
            (each.spectrum, each.product, each.output) for each in its.products.values()]
