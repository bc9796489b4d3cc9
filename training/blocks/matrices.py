"""The weight matrices of a model that can be block-circulant: their names, shapes, block sizes and padding."""
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.nn.utils import parametrize

from circulant.sim.refusal import Refusal, listed, nearest
from circulant.training.blocks.blocks import BlockCirculant, illegal, too_large
from circulant.training.models.cells import Recurrent

__all__ = ["Matrix", "Storage", "assign", "block_sizes", "constraint_of", "matrices", "owner", "resolve", "storage"]

EDGES = ("first", "last")
"""Names of the first and the last module with a matrix, where modules are named to stay dense."""


class Matrix(NamedTuple):
    """A weight matrix of a model: tensor ``tensor`` of ``module``, ``groups`` matrices (rows, columns) stacked.

    Members:
        kernel: extents of a convolution's kernel, each position of which is a matrix (output × input channels).
    """

    module: nn.Module
    tensor: str
    groups: int
    rows: int
    columns: int
    kernel: tuple[int, ...] = ()

    @property
    def weight(self) -> Tensor:
        return getattr(self.module, self.tensor)

    @property
    def first(self) -> Tensor:
        """The parameter (groups, p, q, k) of a weight that carries a constraint."""
        chains: Any = self.module.parametrizations
        first: Tensor = chains[self.tensor].original
        return first

    def constraint(self, block_size: int) -> BlockCirculant:
        """The set of its block-circulant neighbours, where the weight is."""
        constraint = BlockCirculant(self.groups * self.rows, self.columns, block_size, self.groups, self.kernel)
        return constraint.to(self.weight.device)


class Storage(NamedTuple):
    """The needs of a matrix at a block size.

    Members:
        numbers: real numbers of its first columns, which is also the size of its spectra.
        dense: real numbers of the dense matrix.
        padding: fraction of the padded matrix that lies outside of the matrix, 0 where it is cut evenly.
    """

    block_size: int
    numbers: int
    dense: int
    padding: float


def matrices(model: nn.Module) -> dict[str, Matrix]:
    """The matrices that the constraint knows, by parameter name.

    Those of every Linear, Conv1d and Conv2d (of one group), GRU, LSTM, and of our own cells.
    """
    found = {}
    for path, module in model.named_modules():
        for tensor, groups in _tensors(module):
            rows, columns, *kernel = getattr(module, tensor).shape
            found[f"{path}.{tensor}".lstrip(".")] = Matrix(module, tensor, groups=groups, rows=rows // groups,
                                                           columns=columns, kernel=tuple(kernel))
    return found


def _tensors(module: nn.Module) -> Iterator[tuple[str, int]]:
    """Names of a module's matrices, with the number of gates stacked in each."""
    if isinstance(module, nn.Linear) or (isinstance(module, nn.Conv1d | nn.Conv2d) and module.groups == 1):
        yield "weight", 1
    elif isinstance(module, nn.RNNBase):
        weight: Any = module.weight_ih_l0
        gates = len(weight) // module.hidden_size
        yield from ((name, 1 if "_hr_" in name else gates) for name in module._flat_weights_names if "weight" in name)
    elif isinstance(module, Recurrent):
        yield from module.matrices()


def assign(model: nn.Module, block_size: int | Mapping[str, int], dense: Collection[str] = ()) -> dict[str, int]:
    """The block size of each matrix that ``block_size`` names, with those of ``dense`` at 1; see `resolve`.

    Parameters:
        dense: modules or parameters by name; "first" and "last" are those modules of the model that have a matrix.

    Raises:
        Refusal: for names that the model does not have.
    """
    found = matrices(model)
    modules = list(dict.fromkeys(owner(name) for name in found))
    legal = _names(found)
    kept = []
    for name in dense:
        if name not in legal and (name not in EDGES or not modules):
            raise Refusal(f"Dense matrices must be modules or parameters of the model, or {' or '.join(EDGES)}, not "
                          f"{name!r}{nearest(str(name), [*legal, *EDGES])}; legal are {', '.join([*legal, *EDGES])}")
        kept.append(name if name in legal else modules[0 if name == "first" else -1])
    chosen, problems = _by_name(found, block_size)
    if problems:
        raise Refusal(listed(problems))
    stays = {name for name in found if any(_within(name, given) for given in kept)}
    return {name: 1 if name in stays else chosen.get(name, 1) for name in found}


def resolve(model: nn.Module, block_size: int | Mapping[str, int]) -> dict[str, int]:
    """The block size of each matrix that ``block_size`` names (see `compress`), checked; nothing is changed."""
    found = matrices(model)
    if not found:
        raise Refusal("The model must have at least one Linear, convolution, GRU or LSTM to be compressed, but it has "
                      "none; build it from these")
    sizes, problems = _by_name(found, block_size)
    owners = _owners(model)
    for name, k in sizes.items():
        matrix = found[name]
        if problem := illegal(k):
            problems.append(f"{name}: {problem}" if isinstance(block_size, Mapping) else problem)
        elif problem := too_large(k, matrix.rows, matrix.columns):
            problems.append(f"{name}: {problem}")
        chain = _parametrizations(matrix)
        if chain and not constraint_of(matrix):
            kinds = ", ".join(type(part).__name__ for part in chain)
            problems.append(f"{name}: the weight must carry no other parametrization, but has {kinds}; remove it first")
        elif not chain and (others := [other for other in owners[id(matrix.weight)] if other != name]):
            problems.append(f"{name}: the weight must belong to one module, but {', '.join(others)} shares it; copy it")
    if problems:
        raise Refusal(listed(problems))
    return sizes


def block_sizes(model: nn.Module) -> dict[str, int]:
    """The block size of every matrix of the model, by parameter name; 1 for dense ones."""
    constraints = {name: constraint_of(matrix) for name, matrix in matrices(model).items()}
    return {name: constraint.block_size if constraint else 1 for name, constraint in constraints.items()}


def storage(model: nn.Module, block_size: int | Mapping[str, int] | None = None) -> dict[str, Storage]:
    """The needs of every matrix, by parameter name: at its block size, or at the ones that `compress` would give it.

    Raises:
        Refusal: as `resolve`.
    """
    sizes = block_sizes(model) | ({} if block_size is None else resolve(model, block_size))
    found = {}
    for name, matrix in matrices(model).items():
        groups, p, q, k = matrix.constraint(sizes[name]).shape
        dense = groups * matrix.rows * matrix.columns
        found[name] = Storage(k, groups * p * q * k, dense, 1 - dense / (groups * p * q * k * k))
    return found


def constraint_of(matrix: Matrix) -> BlockCirculant | None:
    """The constraint that a matrix carries alone, or None."""
    chain = _parametrizations(matrix)
    return chain[0] if len(chain) == 1 and isinstance(chain[0], BlockCirculant) else None


def owner(name: str) -> str:
    """The module of a parameter's name; the name itself where the model is one module."""
    return name.rpartition(".")[0] or name


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


def _by_name(found: Mapping[str, Matrix], block_size: int | Mapping[str, int]) -> tuple[dict[str, int], list[str]]:
    """The block size of each matrix that is named, unchecked, and the problems of the names."""
    if not isinstance(block_size, Mapping):
        return dict.fromkeys(found, block_size), []
    legal = _names(found)
    problems = [f"A block size must be given to a module or parameter of the model, not to {name!r}"
                f"{nearest(str(name), legal)}; legal are {', '.join(legal)} (compression.block_size of an experiment)"
                for name in block_size if name not in legal]
    chosen = {}
    for name in found:
        if matching := [given for given in block_size if _within(name, given)]:
            chosen[name] = block_size[max(matching, key=len)]
    return chosen, problems


def _names(found: Mapping[str, Matrix]) -> list[str]:
    """Every name that stands for matrices: of parameters, of modules, and of those around them."""
    return list(dict.fromkeys(
        ".".join(name.split(".")[:end]) for name in found for end in range(1, name.count(".") + 2)))


def _within(name: str, given: str) -> bool:
    return name == given or name.startswith(f"{given}.")
