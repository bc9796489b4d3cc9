"""Refusals of what tests ask for."""
import pytest

from circulant.sim.refusal import Refusal


def refused(make, *arguments, **fields):
    """The sentence with which it is refused to make it."""
    with pytest.raises(Refusal) as caught:
        make(*arguments, **fields)
    return str(caught.value)
