"""Disease progression from ten measurements (scikit-learn's diabetes data), by a loop of one's own and `save_run`."""
import torch
from sklearn.datasets import load_diabetes
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

import circulant
from circulant.training import Admm, evaluate

table = load_diabetes()
x = torch.tensor(table.data / table.data.std(0), dtype=torch.float32)
y = torch.tensor((table.target - table.target.mean()) / table.target.std(), dtype=torch.float32)[:, None]
data = circulant.Dataset("diabetes", x[:350].numpy(), y[:350].numpy(), x[350:].numpy(), y[350:].numpy(),
                         task="regression")

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1))
loader = DataLoader(TensorDataset(x[:350], y[:350]), 32, shuffle=True)


def epochs(count, net, *, after_batch=lambda: None, after_epoch=lambda: None):
    optimizer = torch.optim.Adam(net.parameters(), 0.005)
    for _ in range(count):
        for inputs, targets in loader:
            optimizer.zero_grad()
            mse_loss(net(inputs), targets).backward()
            after_batch()
            optimizer.step()
        after_epoch()


admm = Admm(model, {"0": 4}, rho=0.05, growth=1.2)
epochs(15, model, after_batch=admm.add_penalty_gradient, after_epoch=admm.update)
small = circulant.compress(model, {"0": 4})
epochs(20, small)

network = circulant.export(small, data.train_x)
folder = circulant.save_run("runs/meter", small, network, data)
score = evaluate(small, data)
print(f"{folder}: R² {score:.3f}")
assert score > 0.3, "the regression did not learn"
