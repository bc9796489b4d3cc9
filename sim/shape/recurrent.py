"""Rules that recurrent layers have in common.

All matrices of a recurrent layer go through one array: vectors are transformed once, and sums over several vectors are
made in the spectral domain. So they share block size, twiddle bits, and the formats on the way.
"""
from collections.abc import Mapping
from typing import Any

from circulant.sim.arith.circulant import JointProduct, Product
from circulant.sim.arith.fixed import Format, Integers
from circulant.sim.refusal import Refusal

__all__ = ["NONLINEARITIES", "RESETS", "RETURNS", "Directions", "check_directions", "check_formats", "check_matrices",
           "check_nonlinearity", "check_one_block_size", "check_reset", "check_returns", "check_state", "padded"]

RETURNS = ("last", "sequence")

RESETS = ("after", "before")
"""Where the reset gate of a GRU acts: on what the recurrent matrix gives, or on what it takes."""


NONLINEARITIES = ("tanh", "relu", "identity")
"""Functions of the candidate of a GRU, and of a plain recurrent layer."""


def padded(size: int, k: int) -> int:
    """``size`` values in whole blocks of k."""
    return -(-size // k) * k


def check_returns(name: str, returns: object) -> None:
    """
    Raises:
        Refusal: when a layer returns neither the last step nor the whole sequence.
    """
    if returns not in RETURNS:
        raise Refusal(f"Layer {name!r} must return 'last' or 'sequence', not {returns!r}; choose one")


def check_reset(name: str, reset: object) -> None:
    """
    Raises:
        Refusal: when the reset gate of a GRU acts on neither side of the matrix.
    """
    if reset not in RESETS:
        raise Refusal(f"Layer {name!r} must reset 'after' or 'before' the matrix, not {reset!r}; choose one")


def check_nonlinearity(name: str, nonlinearity: object) -> None:
    """
    Raises:
        Refusal: when the candidate of a GRU, or a plain layer, has another function.
    """
    if nonlinearity not in NONLINEARITIES:
        raise Refusal(f"Layer {name!r} must have 'tanh', 'relu' or 'identity' as its nonlinearity, not "
                      f"{nonlinearity!r}; choose one")


class Directions:
    """Two layers over a sequence, one from its first step on and one from its last."""

    kind = "bidirectional"
    keeps = True
    forward: Any
    backward: Any

    @property
    def inputs(self) -> int:
        return int(self.forward.inputs)

    @property
    def outputs(self) -> int:
        """Length of what comes out, both directions together."""
        return int(self.forward.outputs + self.backward.outputs)

    @property
    def returns(self) -> str:
        return str(self.forward.returns)


def check_directions(name: str, forward: Any, backward: Any) -> None:
    """
    Raises:
        Refusal: when two layers are no pair for the two directions of one sequence.
    """
    for direction, layer in (("forward", forward), ("backward", backward)):
        if layer.name != f"{name}.{direction}":
            raise Refusal(f"The {direction} layer of {name!r} must be called '{name}.{direction}', not {layer.name!r}; "
                          "rename it")
    mine, rule = ((layer.kind, layer.inputs, layer.returns) for layer in (backward, forward))
    if mine != rule:
        raise Refusal(f"Both directions of layer {name!r} must have the kind, inputs and what is returned of the "
                      f"first, {rule}, not {mine}; export them again")


def check_one_block_size(name: str, sizes: Mapping[str, int]) -> None:
    """
    Raises:
        Refusal: when the block sizes, by matrix, are not all the same.
    """
    if len(set(sizes.values())) > 1:
        given = ", ".join(f"{k} ({role.replace('_', ' ')})" for role, k in sizes.items())
        raise Refusal(f"All matrices of recurrent layer {name!r} must have one block size, because their sums are made "
                      f"in the spectral domain, not {given}; compress them with one")


def check_matrices(name: str, matrices: Mapping[str, Product | JointProduct], spectra: Mapping[str, list[Product]],
                   sizes: Mapping[str, tuple[int, ...]]) -> None:
    """Check the matrices of a layer, by name.

    Parameters:
        spectra: by vector, the products that take it.
        sizes: by matrix, its rows and the columns of each of its parts.

    Raises:
        Refusal: when block sizes, sizes, or formats contradict each other.
    """
    parts = {role: matrix.parts if isinstance(matrix, JointProduct) else (matrix,) for role, matrix in matrices.items()}
    check_one_block_size(name, {role: matrix.block_size for role, matrix in matrices.items()})
    for role, matrix in matrices.items():
        given = (matrix.rows, *(part.columns for part in parts[role]))
        if given != sizes[role]:
            rows, *columns = sizes[role]
            raise Refusal(f"Layer {name!r}: the matrix of its {role.replace('_', ' ')} must have {rows} rows and "
                          f"{' and '.join(map(str, columns))} columns in blocks of {matrix.block_size}, not {given[0]} "
                          f"and {' and '.join(map(str, given[1:]))}; export it again")
    for vector, products in spectra.items():
        forms = [(each.input, each.spectrum, each.frac, each.product, each.twiddle_bits) for each in products]
        if len(set(forms)) > 1:
            raise Refusal(f"Layer {name!r}: all matrices must take {vector} with the formats of vector, spectrum and "
                          f"sums and the twiddle bits of the first, {forms[0]}, not {forms}; quantize it again")


def check_formats(name: str, rules: list[tuple[str, Format, Format]]) -> None:
    """
    Raises:
        Refusal: when what a rule names has another format than the rule.
    """
    for what, given, rule in rules:
        if given != rule:
            raise Refusal(f"Layer {name!r}: the {what} must have the {rule}, not {given}; quantize it again")


def check_state(name: str, state: Integers, rule: Integers) -> None:
    """
    Raises:
        Refusal: when a state has another shape than ``rule``.
    """
    if state.shape != rule.shape:
        raise Refusal(f"The state of layer {name!r} must have the shape {rule.shape}, not {state.shape}; go on with "
                      "what run returned")
