from types import SimpleNamespace

from circulant.sim.quantize.quantize import quantize
from circulant.sim.shape.kinds import leaves, unknown, within
from tests.sim import samples


def test_leaves_stand_in_place_of_what_is_made_of_them():
    model = samples.chain(samples.bidirectional("lstm", 5, 6), samples.lstm(12, 4))
    stages = quantize(model, samples.data(model)).stages
    assert [layer.name for layer in leaves(stages)] == ["both.forward", "both.backward", "lstm"]
    assert [layer.name for layer in within(stages[0])] == ["both.forward", "both.backward"]
    assert within(stages[1]) == ()


def test_an_empty_branch_has_no_leaves():
    plain = SimpleNamespace(kind="conv", name="conv")
    residual = SimpleNamespace(kind="residual", name="sum", within=(plain,))
    nothing = SimpleNamespace(kind="residual", name="twice", within=())
    assert list(leaves([residual, nothing])) == [plain]


def test_the_error_of_an_unknown_kind_names_the_pass():
    assert str(unknown(SimpleNamespace(), "priced")) == (
        "A layer must be of a kind that can be priced, not SimpleNamespace; register it there (docs/architecture.md, "
        "how to add a layer kind)")
