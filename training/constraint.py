"""The block-circulant constraint, as a parametrization of ordinary torch modules.

A matrix (m × n) is cut into p × q blocks of size k; ragged edges are padded. A block is given by its first column c:
``C[i, j] = c[(i - j) mod k]`` (CirCNN eq. 2, E-RNN eq. 4). The gates of a recurrent layer are separate
matrices, stacked.
"""
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from circulant.sim.refusal import Refusal, nearest
from circulant.training.clone import clone

__all__ = ["BlockCirculant", "Matrix", "block_sizes", "compress", "constraint_of", "decompress", "matrices",
           "resolve"]

BLOCK_SIZES = (1, 2, 4, 8, 16, 32, 64)


class BlockCirculant(nn.Module):
    """The set of block-circulant matrices (rows, columns), made of ``groups`` stacked ones, each padded on its own.

    `forward` maps first columns (groups, p, q, k) to the dense matrix, and `right_inverse` is the Euclidean projection
    back: the mean over each wrapped diagonal, of those entries that a ragged edge leaves.

    Raises:
        Refusal: when the block size is no power of two from 1 to 64, is larger than both sides of a matrix, or the rows
            are no multiple of the groups.
    """

    _lag: Tensor
    _counts: Tensor

    def __init__(self, rows: int, columns: int, block_size: int, groups: int = 1) -> None:
        super().__init__()
        if rows % groups:
            raise Refusal(f"The rows must be a multiple of the {groups} groups, not {rows}; stack gates of one height")
        if problem := _illegal(block_size) or _too_large(block_size, rows // groups, columns):
            raise Refusal(problem)
        self.rows, self.columns, self.block_size, self.groups = rows, columns, block_size, groups
        i = torch.arange(block_size)
        self.register_buffer("_lag", ((i[:, None] - i) % block_size).flatten(), persistent=False)
        ones = torch.ones(1, rows // groups, columns, dtype=torch.float64)
        self.register_buffer("_counts", self._diagonals(ones).clamp(min=1).long(), persistent=False)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Shape of the first columns, (groups, p, q, k)."""
        k = self.block_size
        return self.groups, -(-self.rows // (self.groups * k)), -(-self.columns // k), k

    def forward(self, first: Tensor) -> Tensor:
        """First columns (groups, p, q, k) to the matrix (rows, columns)."""
        groups, p, q, k = self.shape
        blocks = first.index_select(-1, self._lag).view(groups, p, q, k, k)  # (…, row, column)
        dense = blocks.transpose(2, 3).reshape(groups, p * k, q * k)[:, :self.rows // groups, :self.columns]
        return dense.reshape(self.rows, self.columns)

    def right_inverse(self, dense: Tensor) -> Tensor:
        """First columns (groups, p, q, k) of the member of the set that is nearest to a matrix (rows, columns)."""
        sums = self._diagonals(dense.reshape(self.groups, -1, self.columns).double())
        return (sums / self._counts).to(dense.dtype)

    def project(self, dense: Tensor) -> Tensor:
        """The member of the set nearest to a matrix, both (rows, columns)."""
        return self.forward(self.right_inverse(dense))

    def _diagonals(self, gates: Tensor) -> Tensor:
        """Sums over the wrapped diagonals of the blocks: (groups, m, n) to (groups, p, q, k)."""
        k = self.block_size
        _, p, q, _ = self.shape
        whole = gates.new_zeros(len(gates), p * k, q * k)
        whole[:, :gates.shape[1], :gates.shape[2]] = gates
        entries = whole.view(-1, p, k, q, k).transpose(2, 3).reshape(-1, p, q, k * k)
        return entries.new_zeros(len(gates), p, q, k).index_add_(-1, self._lag, entries)

    def extra_repr(self) -> str:
        return f"{self.rows}, {self.columns}, block_size={self.block_size}, groups={self.groups}"


class Matrix(NamedTuple):
    """A weight matrix of a model: tensor ``tensor`` of ``module``, ``groups`` matrices (rows, columns) stacked."""

    module: nn.Module
    tensor: str
    groups: int
    rows: int
    columns: int

    @property
    def weight(self) -> Tensor:
        return getattr(self.module, self.tensor)

    def constraint(self, block_size: int) -> BlockCirculant:
        return BlockCirculant(self.groups * self.rows, self.columns, block_size, self.groups).to(self.weight.device)


def matrices(model: nn.Module) -> dict[str, Matrix]:
    """The matrices that the constraint knows, by parameter name: those of every Linear and every GRU."""
    found = {}
    for path, module in model.named_modules():
        for tensor, groups in _tensors(module):
            rows, columns = getattr(module, tensor).shape
            found[f"{path}.{tensor}".lstrip(".")] = Matrix(module, tensor, groups, rows // groups, columns)
    return found


def _tensors(module: nn.Module) -> Iterator[tuple[str, int]]:
    """Names of a module's matrices, with the number of gates stacked in each."""
    if isinstance(module, nn.Linear):
        yield "weight", 1
    elif isinstance(module, nn.GRU):
        yield from ((name, 3) for name in module._flat_weights_names if name.startswith("weight"))


def compress(model: nn.Module, block_size: int | Mapping[str, int]) -> nn.Module:
    """A deep copy whose weight matrices are the nearest block-circulant ones, parametrized by their first columns.

    Parameters:
        block_size: one for all matrices of Linear and GRU modules, or by module or parameter name: ``{"gru": 8,
            "gru.weight_hh_l0": 16}`` (the longer name wins). Matrices that are not named stay as they are; size 1 is a
            dense matrix.

    The state dict holds first columns (groups, p, q, k), under ``gru.parametrizations.weight_hh_l0.original``.

    Raises:
        Refusal: all problems at once: a size that is no power of two from 1 to 64, or is larger than both sides of
            its matrix; an unknown name; a weight that is shared or already carries another parametrization.
    """
    sizes = resolve(model, block_size)
    model = clone(model)
    found = matrices(model)
    for name, k in sizes.items():
        module, tensor = found[name].module, found[name].tensor
        if constraint_of(found[name]):
            parametrize.remove_parametrizations(module, tensor)
        if k > 1:
            parametrize.register_parametrization(module, tensor, found[name].constraint(k))
    return model


def decompress(model: nn.Module) -> nn.Module:
    """A deep copy that computes the same with ordinary dense weights."""
    return compress(model, {name: 1 for name, matrix in matrices(model).items() if constraint_of(matrix)})


def block_sizes(model: nn.Module) -> dict[str, int]:
    """The block size of every matrix of the model, by parameter name; 1 for dense ones."""
    constraints = {name: constraint_of(matrix) for name, matrix in matrices(model).items()}
    return {name: constraint.block_size if constraint else 1 for name, constraint in constraints.items()}


def constraint_of(matrix: Matrix) -> BlockCirculant | None:
    """The constraint that a matrix carries alone, or None."""
    chain = _parametrizations(matrix)
    return chain[0] if len(chain) == 1 and isinstance(chain[0], BlockCirculant) else None


def _parametrizations(matrix: Matrix) -> list[nn.Module]:
    if not parametrize.is_parametrized(matrix.module, matrix.tensor):
        return []
    lists: Any = matrix.module.parametrizations
    return list(lists[matrix.tensor])


def _owners(model: nn.Module) -> dict[int, list[str]]:
    """The names under which modules hold each parameter, by its id."""
    owners: dict[int, list[str]] = {}
    for path, module in model.named_modules():
        for tensor, parameter in module.named_parameters(recurse=False):
            owners.setdefault(id(parameter), []).append(f"{path}.{tensor}".lstrip("."))
    return owners


def resolve(model: nn.Module, block_size: int | Mapping[str, int]) -> dict[str, int]:
    """The block size of each matrix that ``block_size`` names (see `compress`), checked; nothing is changed."""
    found = matrices(model)
    if not found:
        raise Refusal("The model must have at least one Linear or GRU module to be compressed, but it has none")
    sizes, problems = _by_name(found, block_size)
    owners = _owners(model)
    for name, k in sizes.items():
        matrix = found[name]
        if problem := _illegal(k):
            problems.append(f"{name}: {problem}" if isinstance(block_size, Mapping) else problem)
        elif problem := _too_large(k, matrix.rows, matrix.columns):
            problems.append(f"{name}: {problem}")
        chain = _parametrizations(matrix)
        if chain and not constraint_of(matrix):
            kinds = ", ".join(type(part).__name__ for part in chain)
            problems.append(f"{name}: the weight must carry no other parametrization, but has {kinds}; remove it first")
        elif not chain and (others := [owner for owner in owners[id(matrix.weight)] if owner != name]):
            problems.append(f"{name}: the weight must belong to one module, but {', '.join(others)} shares it; copy it")
    if problems:
        raise Refusal("\n".join(dict.fromkeys(problems)))
    return sizes


def _by_name(found: Mapping[str, Matrix], block_size: int | Mapping[str, int]) -> tuple[dict[str, int], list[str]]:
    """The block size of each matrix that is named, unchecked, and the problems of the names."""
    if not isinstance(block_size, Mapping):
        return dict.fromkeys(found, block_size), []
    legal = {".".join(name.split(".")[:end]): None for name in found for end in range(1, name.count(".") + 2)}
    problems = [f"A block size must be given to a module or parameter of the model, not to {name!r}"
                f"{nearest(str(name), legal)}; legal are {', '.join(legal)}"
                for name in block_size if name not in legal]
    chosen = {}
    for name in found:
        if matching := [given for given in block_size if given == name or name.startswith(f"{given}.")]:
            chosen[name] = block_size[max(matching, key=len)]
    return chosen, problems


def _illegal(k: object) -> str | None:
    """Why nothing can have the block size, or None."""
    if isinstance(k, int) and not isinstance(k, bool) and k in BLOCK_SIZES:
        return None
    way = ""
    if isinstance(k, int | float) and not isinstance(k, bool) and k == k:
        lower = max((size for size in BLOCK_SIZES if size <= k), default=BLOCK_SIZES[0])
        upper = min((size for size in BLOCK_SIZES if size >= k), default=BLOCK_SIZES[-1])
        way = f"; choose {lower}" if lower == upper else f"; choose {lower} or {upper}"
    return f"Block size must be a power of two from 1 to {BLOCK_SIZES[-1]}, not {k!r}{way}"


def _too_large(k: int, rows: int, columns: int) -> str | None:
    """Why a matrix (rows, columns) cannot have the block size, or None."""
    largest = max(size for size in BLOCK_SIZES if size <= max(rows, columns))
    if k <= largest:
        return None
    return (f"Block size must not exceed both sides of its matrix ({rows} × {columns}), but {k} does; "
            f"choose {largest} or less")
