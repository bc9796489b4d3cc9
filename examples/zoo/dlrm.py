"""A small recommender as DLRM: dense features and looked-up vectors, multiplied with each other in pairs.

Run it with `python examples/zoo/dlrm.py [FOLDER]`; weights are random. Both MLPs have blocks of 8. Indices come as
integers; a table is read by comparing the index with each of its rows.
"""
import sys
from itertools import pairwise

import torch
from torch import Tensor, nn

import circulant


def mlp(*sizes: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers)


class DLRM(nn.Module):
    """https://github.com/facebookresearch/dlrm, with a lookup for each table: Naumov et al., 2019."""

    def __init__(self, dense: int = 13, size: int = 8, rows: tuple[int, ...] = (24, 7, 31), width: int = 64) -> None:
        super().__init__()
        self.bot_l = mlp(dense, width, size)
        self.emb_l = nn.ModuleList([nn.Embedding(count, size) for count in rows])
        vectors = 1 + len(rows)
        self.top_l = nn.Sequential(mlp(size + vectors * (vectors - 1) // 2, width), nn.Linear(width, 1), nn.Sigmoid())

    def interact_features(self, x: Tensor, ly: list[Tensor]) -> Tensor:
        (batch_size, d) = x.shape
        T = torch.cat([x, *ly], dim=1).view((batch_size, -1, d))
        Z = torch.bmm(T, torch.transpose(T, 1, 2))
        _, ni, nj = Z.shape
        li = torch.tensor([i for i in range(ni) for j in range(i)])
        lj = torch.tensor([j for i in range(nj) for j in range(i)])
        Zflat = Z[:, li, lj]
        return torch.cat([x, Zflat], dim=1)

    def forward(self, dense_x: Tensor, lS_i: Tensor) -> Tensor:
        x = self.bot_l(dense_x)
        ly = [table(lS_i[:, number]) for number, table in enumerate(self.emb_l)]
        z = self.interact_features(x, ly)
        return self.top_l(z)


def model(small: bool = False) -> nn.Module:
    return (DLRM(3, 2, (4, 3), 4) if small else DLRM()).eval()


def samples(count: int, small: bool = False) -> tuple[Tensor, Tensor]:
    """Dense features (count, 13), indices (count, 3)."""
    rows = (4, 3) if small else (24, 7, 31)
    return torch.randn(count, 3 if small else 13), torch.stack([torch.randint(n, (count,)) for n in rows], 1)


def main(folder: str = "runs/dlrm") -> None:
    torch.manual_seed(0)
    net, x = model(), samples(64)
    net = circulant.compress(net, {"bot_l.0": 8, "bot_l.2": 8, "top_l.0.0": 8})
    print(circulant.inspect(net, x))
    network = circulant.export(net, x, name="dlrm")
    circulant.generate(network, multipliers=512).write(folder)
    given = dict(zip((each.name for each in network.inputs), x, strict=True))
    check = circulant.verify(folder, network.vectors({name: each[:32] for name, each in given.items()}))
    print(f"{check.words_compared} words compared, {check.mismatches} mismatches, "
          f"{check.cycles_per_sequence:g} cycles per sample")


if __name__ == "__main__":
    main(*sys.argv[1:2])
