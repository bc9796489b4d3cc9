"""Weights that are block-circulant and integers: the set that training on the hardware's numbers stays in.

The golden model stores the spectra of first columns as integers of a `WeightGrid`. In the order of `sim.arith.fft` the
real numbers of a spectrum are orthogonal coordinates of the circulant block (Parseval), so that rounding each of them
gives the nearest block of the joint set, circulant and on the grid (REQ-YOLO, FPGA 2019, section 3.2); at ragged edges,
where a first column stands for fewer entries, it is a neighbour.
"""
import math
import re
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from circulant.sim.arith.fixed import Format
from circulant.sim.arith.weight_grid import WeightGrid
from circulant.sim.golden.network import Network
from circulant.sim.passes.bases import matrices as golden_matrices
from circulant.sim.quantize.quantize import grids
from circulant.sim.refusal import Refusal
from circulant.training.blocks.blocks import BlockCirculant
from circulant.training.blocks.clone import clone, settle
from circulant.training.blocks.fixed import integers
from circulant.training.blocks.matrices import Matrix, constraint_of, matrices
from circulant.training.models.scans import ComplexRecurrence, DiagonalRecurrence

__all__ = ["QuantizedSet", "constrain_to_quantized", "flipped", "golden_paths", "nearest_quantized", "quantized_set_of",
           "settled", "weight_formats"]

ROLES = {"ih": "input_product", "hh": "recurrent_product", "hr": "projection"}
"""The golden matrix of each matrix of a recurrent layer."""


def nearest_quantized(first: Tensor, grid: WeightGrid, *, noise: float = 0.0) -> Tensor:
    """The first columns (groups, p, q, k) nearest to ``first`` whose spectra are of the grid; float64.

    The block rows of the grid are those of all groups; or those of one, where groups are positions of a kernel.

    Parameters:
        noise: the probability with which each bit of the spectra is flipped, as `Network.with_faults` flips it.
    """
    k, form = first.shape[-1], grid.form
    scale = torch.ones((), dtype=torch.float64, device=first.device)
    if grid.row_shifts:
        rows = torch.tensor(grid.row_shifts, dtype=torch.float64, device=first.device)
        scale = torch.exp2(rows).view(-1, first.shape[1], 1, 1)
    half = torch.fft.rfft(first.double() * scale)
    re, im = (flipped(integers(part, form), form, noise).double() * form.step for part in (half.real, half.imag))
    return torch.fft.irfft(torch.complex(re, im), n=k) / scale


def flipped(numbers: Tensor, form: Format, rate: float) -> Tensor:
    """Integers of a format, each bit of which is flipped with the probability ``rate``, from torch's generator."""
    if not rate:
        return numbers
    flips = torch.zeros_like(numbers)
    for bit in range(form.width):
        flips |= (torch.rand(numbers.shape, device=numbers.device) < rate).long() << bit
    sign = 1 << (form.width - 1)
    return (((numbers ^ flips) & ((1 << form.width) - 1)) ^ sign) - sign


class QuantizedSet(BlockCirculant):
    """Block-circulant matrices whose spectra are integers of a grid; the gradient passes their rounding.

    Parameters:
        others: those of `BlockCirculant`.
        noise: the probability with which a bit is flipped each time that they are read in training (RandBET, Stutz et
            al., MLSys 2021); the gradient passes that too.
    """

    def __init__(self, rows: int, columns: int, block_size: int, groups: int = 1, kernel: tuple[int, ...] = (), *,
                 grid: WeightGrid, noise: float = 0.0) -> None:
        super().__init__(rows, columns, block_size, groups, kernel)
        self.grid, self.noise = grid, noise

    def settled(self, first: Tensor) -> Tensor:
        """The first columns that count, exactly; the gradient is that of ``first``."""
        found = nearest_quantized(first.detach(), self.grid, noise=self.noise if self.training else 0.0)
        return found.to(first.dtype) + (first - first.detach())

    def forward(self, first: Tensor) -> Tensor:
        return super().forward(self.settled(first))

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, grid={self.grid}"


class OnGrid(nn.Module):
    """A vector of weights, one for each value, in a format; the gradient passes its rounding.

    Parameters:
        module: whose vector it is.
    """

    def __init__(self, module: nn.Module, form: Format) -> None:
        super().__init__()
        self.form = form
        self.root = math.sqrt(module.normalized_shape[0]) if isinstance(module, nn.RMSNorm) else 1.0
        self.logarithms = isinstance(module, DiagonalRecurrence)

    def forward(self, vector: Tensor) -> Tensor:
        """The vector for which the golden one is on the grid: gain · √n of an RMSNorm, exp(−exp(ν)), else itself."""
        x = vector.detach().double()
        if self.logarithms:
            least = self.form.step
            found = (integers((-x.exp()).exp(), self.form) * least).clamp(min=least).log().neg().log()
        else:
            found = integers(x * self.root, self.form) * self.form.step / self.root
        return found.to(vector.dtype) + (vector - vector.detach())

    def right_inverse(self, vector: Tensor) -> Tensor:
        return vector


def _vectors(model: nn.Module) -> Iterator[tuple[str, nn.Module, str, str]]:
    """Vectors of weights: names of parameters, modules, tensors, and the paths of their golden integers."""
    for path, module in model.named_modules():
        if isinstance(module, nn.LayerNorm | nn.RMSNorm) and module.weight is not None:
            yield f"{path}.weight".lstrip("."), module, "weight", f"{_layer(path, 'norm')}.gain"
        elif isinstance(module, nn.Conv1d | nn.Conv2d) and module.groups > 1:
            yield f"{path}.weight".lstrip("."), module, "weight", f"{_layer(path, 'conv')}.weights"
        elif isinstance(module, DiagonalRecurrence) and not isinstance(module, ComplexRecurrence):
            yield f"{path}.nu_log".lstrip("."), module, "nu_log", f"{_layer(path, 'decay')}.factors"


def quantized_set_of(matrix: Matrix, block_size: int, grid: WeightGrid, noise: float = 0.0) -> QuantizedSet:
    """The joint set of a matrix, where its weight is."""
    made = QuantizedSet(matrix.groups * matrix.rows, matrix.columns, block_size, matrix.groups, matrix.kernel,
                        grid=grid, noise=noise)
    return made.to(matrix.weight.device)


def constrain_to_quantized(model: nn.Module, forms: Mapping[str, WeightGrid], *, noise: float = 0.0) -> nn.Module:
    """A deep copy whose matrices and vectors, by parameter name, are trained on the integers of a grid, the matrices
    with ``noise`` as `QuantizedSet` has it.

    Their first columns keep what is lost by rounding, so that many small steps of the optimizer come to one step of
    the grid.
    """
    model = clone(model)
    vectors = {name: (module, tensor) for name, module, tensor, _ in _vectors(model)}
    for name, form in forms.items():
        if name in vectors:
            module, tensor = vectors[name]
            parametrize.register_parametrization(module, tensor, OnGrid(module, form.form))
            continue
        matrix = matrices(model)[name]
        constraint = constraint_of(matrix)
        with torch.no_grad():
            first = _first(matrix)
        if constraint is not None:
            parametrize.remove_parametrizations(matrix.module, matrix.tensor)
        _parametrize(matrix, quantized_set_of(matrix, 1 if constraint is None else constraint.block_size, form, noise),
                     first)
    return model


def settled(model: nn.Module) -> nn.Module:
    """A deep copy of a model of `constrain_to_quantized`, with the quantized values as plain weights."""
    model = clone(model)
    for _, module, tensor, _ in [*_vectors(model)]:
        if parametrize.is_parametrized(module, tensor):
            parametrize.remove_parametrizations(module, tensor)
    for matrix in matrices(model).values():
        constraint = constraint_of(matrix)
        if not isinstance(constraint, QuantizedSet):
            continue
        with torch.no_grad():
            first = constraint.eval().settled(_first(matrix))
        parametrize.remove_parametrizations(matrix.module, matrix.tensor)
        if constraint.block_size > 1:
            _parametrize(matrix, matrix.constraint(constraint.block_size), first)
    return model


def golden_paths(model: nn.Module, network: Network) -> dict[str, str]:
    """By parameter name the path of the golden matrix, or vector, that comes from it.

    Raises:
        Refusal: when a golden matrix comes from no parameter, or a normalisation stands between them.
    """
    if any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in model.modules()):
        raise Refusal("A model must have no batch normalisation to be trained on its integers, as that changes them "
                      "again; fold it into the weights first")
    known = grids(network).keys()
    found = {name: path for name, matrix in matrices(model).items() if (path := _path(name, matrix)) in known}
    found |= {name: path for name, _, _, path in _vectors(model) if path in known}
    if missing := {path for layer in network.layers for path in golden_matrices(layer)} - set(found.values()):
        raise Refusal(f"Every golden matrix must come from a matrix of the model to be trained on its integers, but "
                      f"{', '.join(sorted(missing))} does not; give the modules names of letters and underscores")
    return found


def weight_formats(model: nn.Module, network: Network) -> dict[str, WeightGrid]:
    """The grid in which a golden network stores each matrix of its model, by parameter name.

    It is what `finetune`, `constrain_to_quantized` and `Admm` take as their forms.

    Raises:
        Refusal: as `golden_paths`.
    """
    known = grids(network)
    return {name: known[path] for name, path in golden_paths(model, network).items()}


def _path(name: str, matrix: Matrix) -> str:
    """Where `capture.lowering` puts a matrix."""
    module, _, tensor = name.rpartition(".")
    recurrent = re.fullmatch(r"weight_(ih|hh|hr)_l(\d+)(_reverse)?", tensor)
    if recurrent is None:
        return f"{_layer(module, 'linear')}.product"
    side, level, reverse = recurrent.groups()
    layers, both = getattr(matrix.module, "num_layers", 1), getattr(matrix.module, "bidirectional", False)
    gates = matrix.groups if side != "hr" else 4
    layer = _layer(f"{module}_l{level}" if layers > 1 else module, {1: "rnn", 3: "gru", 4: "lstm"}[gates])
    return f"{layer}{('.backward' if reverse else '.forward') if both else ''}.{ROLES[side]}"


def _layer(path: str, kind: str) -> str:
    name = re.sub(r"\W", "_", path, flags=re.ASCII).strip("_")
    return name if name[:1].isalpha() else f"{kind}_{name}".rstrip("_")


def _first(matrix: Matrix) -> Tensor:
    """First columns (groups, p, q, k); k = 1 where the matrix is dense."""
    if constraint_of(matrix) is None:
        return matrix.constraint(1).right_inverse(matrix.weight.detach())
    return matrix.first.detach().clone()


def _parametrize(matrix: Matrix, constraint: BlockCirculant, first: Tensor) -> None:
    """Give a plain weight the constraint and these first columns."""
    parametrize.register_parametrization(matrix.module, matrix.tensor, constraint)
    with torch.no_grad():
        matrix.first.copy_(first)
    settle(matrix.module)
