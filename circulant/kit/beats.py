"""Beats of a self-checking test bench: words that go in, and the golden model's that have to come out."""
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from circulant.sim.cosim.job import Job, Played
from circulant.sim.cosim.manifest import Manifest, Port
from circulant.sim.cosim.simulate import job_of
from circulant.sim.cosim.verification import fitted
from circulant.sim.refusal import Refusal
from circulant.sim.vectors import Vectors

__all__ = ["BEATS", "Beats", "beats_of"]

BEATS = 4096
"""Beats that the sequences of a test bench have at most, in and out together, unless one alone has more."""

SEQUENCES = 8
"""Sequences of a test bench at most."""


@dataclass(frozen=True)
class Beats:
    """The lines of two ``$readmemh`` files; tlast is the bit above tdata.

    Parameters:
        sequences: that were taken from the vectors, the first ones.
        given, expected: hexadecimal words of the input and of the output, a beat each.
        patience: cycles without a beat after which the circuit counts as stuck.
        vector: the first input vector, integers.
        words: tdata of its beats, hexadecimal digits.
    """

    sequences: int
    given: tuple[str, ...]
    expected: tuple[str, ...]
    patience: int
    vector: tuple[int, ...]
    words: tuple[str, ...]


def beats_of(manifest: Manifest, vectors: Vectors) -> Beats:
    """The first sequences of ``vectors`` as beats; whole groups where streams are interleaved.

    Raises:
        Refusal: when there is none, or the vectors do not fit the ports of the design.
    """
    if not len(vectors.inputs):
        raise Refusal("A test bench must play at least one sequence, but the vectors hold none; give some")
    inputs, outputs = fitted(manifest, vectors)
    played = Played.of(inputs, outputs, vectors.lengths, streams=manifest.streams)
    job = job_of(manifest, (), played, None)
    count = _count(job)
    given, expected = [], []
    for sequence in range(count):
        given += _lines(*job.offered(sequence))
        results = job.results[sequence]
        expected += _lines(manifest.output.pack(played.outputs[sequence]).reshape(-1, manifest.output.beat_bytes),
                           job.last_beats(results, job.output_beats))
    first = played.inputs[0][0]
    return Beats(count, given=tuple(given), expected=tuple(expected), patience=job.patience,
                 vector=tuple(int(value) for value in first), words=_words(manifest.input, first))


def _count(job: Job) -> int:
    each = np.asarray(job.steps) * job.input_beats + np.asarray(job.results) * job.output_beats
    return max(1, min(SEQUENCES, int(np.searchsorted(np.cumsum(each), BEATS, side="right"))))


def _lines(beats: NDArray[np.uint8], last: NDArray[np.bool_]) -> list[str]:
    return [f"{int(mark)}{beat[::-1].tobytes().hex()}" for beat, mark in zip(beats, last, strict=True)]


def _words(port: Port, vector: NDArray[np.int64]) -> tuple[str, ...]:
    return tuple(beat[::-1].tobytes().hex() for beat in port.pack(vector))
