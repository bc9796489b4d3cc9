"""Choices of `benchmarks.draw` that hypothesis makes, so that a network which fails is made as small as can be."""
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from hypothesis import strategies as st

__all__ = ["Choices"]


class Choices:
    """The methods of a numpy generator that `benchmarks.draw` calls.

    Sizes, kinds and options are hypothesis's; the numbers of matrices and data, which nobody makes smaller, are seeded.

    Parameters:
        data: what `hypothesis.strategies.data` gives.
        seed: of these numbers.
    """

    def __init__(self, data: st.DataObject, seed: int) -> None:
        self._data, self._numbers = data, np.random.default_rng((29, seed))

    def integers(self, low: int, high: int | None = None) -> int:
        """A number from ``low``, else from 0, up to but without the last argument."""
        least, most = (0, low) if high is None else (low, high)
        return self._data.draw(st.integers(int(least), int(most) - 1))

    def choice(self, values: Sequence[Any], size: int | None = None) -> Any:
        picked = st.sampled_from(list(values))
        return self._data.draw(picked if size is None else st.lists(picked, min_size=int(size), max_size=int(size)))

    def random(self) -> float:
        return self._data.draw(st.integers(0, 99)) / 100

    def normal(self, *given: Any) -> Any:
        return self._numbers.normal(*given)

    def uniform(self, *given: Any) -> Any:
        return self._numbers.uniform(*given)

    def generator(self) -> np.random.Generator:
        """This object where a numpy generator is asked for."""
        return cast(np.random.Generator, self)
