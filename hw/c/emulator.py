"""The C of a network as a fast golden model: compiled for this machine, and called with whole batches."""
import ctypes

import numpy as np
from numpy.typing import ArrayLike

from circulant.hw.c.compiler import library
from circulant.hw.c.source import Source
from circulant.hw.ctext.unit import beside
from circulant.hw.ctext.value import storage
from circulant.sim.arith.fixed import Integers
from circulant.sim.golden.network import Network, Result
from circulant.sim.refusal import Refusal
from circulant.sim.shape.sequences import descending, valid

__all__ = ["Emulator"]

render = beside(__file__)

LANES = 32
"""Sequences side by side: four AVX2 registers of 32-bit integers, so that a loaded weight is used four times. 16 are
slower, 64 no faster."""


class Emulator:
    """`Network.run` and `Network.run_integers`, the same integers, many times as fast.

    Parameters:
        network: what it computes.

    Raises:
        Refusal: as `generate_c`, and when there is no C compiler.
    """

    def __init__(self, network: Network) -> None:
        source = Source(network)
        main = render("emulator.c.j2", **source.common, lanes=LANES)
        files = {f"{source.name}.c": source.code, f"{source.name}.h": source.header, "emulator.c": main}
        self.network, self._source = network, source
        self._library = ctypes.CDLL(str(library(files, "emulator.c")))
        self._library.workspace_bytes.restype, self._library.workspace_bytes.argtypes = ctypes.c_int64, [ctypes.c_int64]
        self._library.emulate.restype = None
        self._library.emulate.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
                                          ctypes.c_void_p]
        self._input_type, self._output_type = (np.dtype(storage(form)[:-2])
                                               for form in (network.input_format, network.output_format))

    def run(self, x: ArrayLike, *, lengths: ArrayLike | None = None) -> Result:
        """Golden outputs for real inputs (N, T, inputs) or (N, inputs), which are first brought to the input format.

        Parameters:
            lengths: as `run_integers`.
        """
        network = self.network
        integers = self.run_integers(network.integers(x), lengths)
        return Result(integers, network.output_format.real(integers))

    def run_integers(self, x: Integers, lengths: ArrayLike | None = None) -> Integers:
        """Golden outputs for inputs that are integers of the input format already, images as `Network.run_integers`
        takes them. Threads may call it together.

        Parameters:
            lengths: (N,), the steps of each sequence; None where all have T. Outputs beyond them are 0.

        Raises:
            Refusal: when the shape is wrong or an integer lies beyond the format; as `Network.lengths`.
        """
        network, form = self.network, self.network.input_format
        x = np.asarray(x)
        between = x.shape[1:2] if network.sequence else network.flow.grid or ()
        if x.shape[1:2] == (network.flow.pixels,) and between and not network.sequence:  # Pixel by pixel.
            x = x.reshape(len(x), *between, -1)
        if x.shape[1:] != (*between, network.flow.size):
            axes = ", ".join(map(str, ("N", *("T" if network.sequence else between), network.flow.size)))
            raise Refusal(f"Inputs of network {network.name!r} must have the shape ({axes}), not {x.shape}; "
                          "rearrange the axes")
        if x.dtype.kind not in "iu":
            raise Refusal(f"Inputs of network {network.name!r} must be integers, not {x.dtype}; quantize them, or call "
                          "run")
        if x.size and (x.min() < form.lo or x.max() > form.hi):
            raise Refusal(f"Inputs of network {network.name!r} must lie in the {form.width}-bit format from {form.lo} "
                          f"to {form.hi}, not from {x.min()} to {x.max()}; quantize them, or call run")
        known = network.lengths(x, lengths)
        if known is None:
            return self._emulate(x)
        y, order = np.zeros((*x.shape[:2 if network.per_step else 1], network.end.size), np.int64), descending(known)
        late = network.per_step and not self._source.whole  # Padding comes too late to matter.
        ends = np.arange(LANES, len(order), LANES) if late else np.flatnonzero(np.diff(known[order])) + 1
        for some in np.split(order, ends):  # Of one length, or of about one.
            if network.per_step and len(some):
                found, steps = self._emulate(x[some, :known[some[0]]]), int(known[some[0]])
                y[some, :steps] = np.where(valid(known[some], steps)[..., None], found, 0)
            elif len(some):
                y[some] = self._emulate(x[some, :known[some[0]]])
        return y

    def _emulate(self, x: Integers) -> Integers:
        """The outputs for sequences of one length, or for vectors."""
        network, given = self.network, np.ascontiguousarray(x, self._input_type)
        steps = x.shape[1] if network.sequence else 1
        between = network.end.grid or (() if network.sequence or not network.end.sequence else (self._source.height,))
        y = np.empty((*x.shape[:2 if network.per_step else 1], *between, network.end.size), self._output_type)
        workspace = np.empty(self._library.workspace_bytes(steps) + 64, np.uint8)
        aligned = workspace.ctypes.data + -workspace.ctypes.data % 64
        self._library.emulate(aligned, given.ctypes.data, len(x), steps, y.ctypes.data)
        return y.astype(np.int64)
