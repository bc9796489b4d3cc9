"""Tables that an integer reads, and products of vectors with each other."""
import numpy as np
import pytest
import torch
from torch import nn

from circulant.sim.error.error_bound import error_bound
from circulant.sim.refusal import Refusal
from circulant.training import export, inspect, reference
from tests.modules import Net


def indices(*rows, count=20):
    torch.manual_seed(1)
    return torch.stack([torch.randint(n, (count,)) for n in rows], 1)


FORMS = {
    "one of each": (lambda m, x: torch.tanh(m.table(x[:, 0])) + m.table(x[:, 1]), indices(5, 5)),
    "all at once": (lambda m, x: m.fc(m.table(x).flatten(1)), indices(5, 5)),
    "of numbers": (lambda m, x: m.table(x[:, 1].long()), indices(5, 5).float()),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_row_is_that_of_the_table(name):
    torch.manual_seed(0)
    run, x = FORMS[name]
    model = Net(run, table=nn.Embedding(5, 3), fc=nn.Linear(6, 2)).eval()
    exact, network = reference(model, x), export(model, x)  # The former is compared with torch.
    golden, given = network.run(x), x.numpy()
    assert (np.abs(golden.real - exact.run(given)) <= error_bound(network, exact, given) + 1e-9).all()
    assert np.abs(golden.real - exact.run(given)).max() < 0.01
    assert all(entry.status == "converted" for entry in inspect(model, x) if "table" in entry.name)


def test_products_are_sums_of_products_and_those_of_no_use_are_left_out():
    def run(m, x):
        rows = torch.cat((x, torch.tanh(m.fc(x))), 1).view(len(x), 2, 4)
        pairs = torch.bmm(rows, rows.transpose(1, 2))
        return pairs[:, torch.tensor([1]), torch.tensor([0])]

    torch.manual_seed(0)
    model, x = Net(run, fc=nn.Linear(4, 4)).eval(), torch.randn(9, 4)
    assert [node.layer.kind for node in reference(model, x).nodes].count("product") == 1
    whole = Net(lambda m, x: (x.view(-1, 2, 2) @ m.fc(x).view(-1, 2, 2)).flatten(1), fc=nn.Linear(4, 4)).eval()
    assert [node.layer.kind for node in reference(whole, x).nodes].count("product") == 4


@pytest.mark.parametrize(("run", "message"), [
    (lambda m, x: m.large(x[:, 0]), r"large \(Embedding: its table must have at most 256 rows, not 300, as each is"),
    (lambda m, x: m.moving(x[:, 0]), r"moving \(Embedding: max_norm changes its weights while it runs"),
    (lambda m, x: m.fc(x.float().long().float()), r"(float|long)\w* \("),
    (lambda m, x: torch.matmul(m.table(x[:, 0]), m.fc.weight.T), r"(matmul|fc_weight) \((matmul: it must|tens)"),
])
def test_what_takes_no_table_is_refused(run, message):
    model = Net(run, table=nn.Embedding(5, 2), large=nn.Embedding(300, 2), moving=nn.Embedding(5, 2, max_norm=1.0),
                fc=nn.Linear(2, 2)).eval()
    with pytest.raises(Refusal, match=rf"cannot be converted: (.*, )?{message}"):
        inspect(model, indices(5, 5)).require()


@pytest.mark.parametrize(("x", "message"), [
    (torch.rand(8, 1) * 4, "^The indices of a table (Embedding) must be integers, as its rows are compared with them, "
                           "but the sample has others, which torch cuts off; round them first$"),
    (torch.full((8, 1), 7.0), "^1 part of the model cannot be converted: table (Embedding: it fails on samples of the "
                              "shape (2, 1): IndexError: index out of range in self)")])
def test_an_index_that_is_none_of_a_row_is_refused(x, message):
    model = Net(lambda m, x: m.fc(m.table(x[:, 0].long())), table=nn.Embedding(5, 3), fc=nn.Linear(3, 2)).eval()
    with pytest.raises(Refusal, match=message.replace("(", r"\(").replace(")", r"\)")):
        export(model, x)
