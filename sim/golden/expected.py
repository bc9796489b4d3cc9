"""Test vectors of a network: the integers of real inputs, and the outputs that golden expects of them."""
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from circulant.sim.arith.fixed import Integers
from circulant.sim.refusal import Refusal
from circulant.sim.shape.sequences import Lengths, descending, valid
from circulant.sim.vectors import Vectors

if TYPE_CHECKING:
    from circulant.sim.golden.network import Network

__all__ = ["expected", "vectors"]


def vectors(network: "Network", x: ArrayLike | Mapping[str, ArrayLike], lengths: ArrayLike | None) -> Vectors:
    """`Network.vectors` of real inputs.

    Raises:
        Refusal: as there.
    """
    if network.many or isinstance(x, Mapping):
        return _of_all(network, x if isinstance(x, Mapping) else {network.entry.name: x}, lengths)
    inputs = network.integers(x)
    known = network.lengths(inputs, lengths)
    if known is not None:
        inputs[~valid(known, inputs.shape[1])] = 0
    if network.flow.grid is not None:
        inputs = inputs.reshape(len(inputs), -1, network.flow.size)
    return Vectors(inputs, network.run_integers(inputs, known), network.hash, known)


def _of_all(network: "Network", x: Mapping[str, ArrayLike], lengths: ArrayLike | None) -> Vectors:
    given, leading = network.all_integers(x), network.leading
    known = network.lengths(given[leading.name], lengths)
    for each in network.inputs:
        count, wanted = (values.shape[:1 + (each.flow.sequence and leading.flow.sequence)]
                         for values in (given[each.name], given[leading.name]))
        if count != wanted:
            raise Refusal(f"Inputs of network {network.name!r} must come together, as many samples and steps of each, "
                          f"but {each.name!r} has {count} and {leading.name!r} {wanted}; give the same of all")
        if known is not None and each.flow.sequence:
            given[each.name][~valid(known, given[each.name].shape[1])] = 0
    return expected(network, given, known)


def expected(network: "Network", given: Mapping[str, Integers], lengths: Lengths | None = None) -> Vectors:
    """Integers of all inputs by name, as `compute` takes them, with the outputs expected; for networks with any
    number of inputs and outputs.

    Parameters:
        lengths: of sequences, in any order; 0 stands beyond them.
    """
    leading, flows = network.leading, {each.name: each.flow for each in network.inputs}
    count, steps = len(given[leading.name]), given[leading.name].shape[1] if network.sequence else 1
    order = np.arange(count) if lengths is None else descending(lengths)
    found = {name: np.zeros((count, *([steps] if network.gives_steps(name) else
                                      [network.vectors_of(name)] if network.flows[name].sequence else []),
                             network.flows[name].size), np.int64) for name in network.outputs}
    batch = network.side_by_side(steps * leading.flow.pixels)
    for start in range(0, count, batch):
        some = order[start:start + batch]
        longest = steps if lengths is None else int(lengths[some[0]])
        outputs = network.compute({name: values[some, :longest] if flows[name].sequence else values[some]
                                for name, values in given.items()},
                               lengths=None if lengths is None else lengths[some])
        for name, values in outputs.items():
            if network.gives_steps(name):
                found[name][some, :longest] = values
            else:
                found[name][some] = values
    taken = {name: values.reshape(len(values), -1, flows[name].size) if flows[name].grid is not None else values
             for name, values in given.items()}
    return Vectors(taken.pop(leading.name), found.pop(network.result), network.hash, lengths,
                   more_inputs=taken, more_outputs=found)
