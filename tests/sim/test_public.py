"""The boundary of the API: what a call may be, and the one sentence for any other."""
import dataclasses
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from circulant.sim.public import public
from circulant.sim.refusal import Refusal


@dataclasses.dataclass
class Settings:
    rounds: int = 1
    slope: float = 1.0


@public(more=Settings, called={"slope": "lr"})
def fit(data: NDArray[np.float64], folder: str | Path = ".", *, lr: float = 1.0, sizes: int | Mapping[str, int] = 8,
        tell: Callable[[int], None] | None = None, fast: bool = False, **more: int) -> tuple[object, ...]:
    """Fits."""
    return data, folder, lr, sizes, fast, more


@public
def show(x: ArrayLike) -> None:
    pass


@public
@dataclasses.dataclass(frozen=True)
class Pair:
    first: int
    second: str = "b"

    @public
    def write(self, path: Path) -> Path:
        return path


X = np.zeros(3)


def test_what_is_meant_goes_through_as_it_is():
    assert fit(X, "here", lr=np.float32(2), sizes={"a": 8}, rounds=3)[1:] == (
        "here", 2.0, {"a": 8}, False, {"rounds": 3})
    assert fit(X, Path("x"), lr=1, sizes=np.int64(4), tell=print, fast=np.True_)[3] == 4
    assert fit(X, sizes=2.5)[3] == 2.5, "whether a number is legal says the function"
    assert Pair(1) == Pair(first=1, second="b")
    assert Pair(1).write(Path("x")) == Path("x")
    for each in (X, [1, 2], [[1.0], [2.0]], 3, np.float32(3), [X, X]):
        show(each)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: fit(X, foldr="x"), "fit must be given arguments that it knows, not 'foldr'; did you mean 'folder'?"),
    (lambda: fit(X, round=2), "fit must be given arguments that it knows, not 'round'; did you mean 'rounds'?"),
    (lambda: fit(X, slope=2), "fit must be given arguments that it knows, not 'slope'; here that is lr"),
    (lambda: fit(X, zzz=2), "fit must be given arguments that it knows, not 'zzz'; it takes data, folder, lr, sizes, "
                            "tell, fast, rounds"),
    (lambda: fit(), "fit must be called as fit(data, folder=…, lr=…, sizes=…, tell=…, fast=…, **more), but it lacks "
                    "the argument 'data'"),
    (lambda: fit(X, ".", 3), "but there are too many arguments"),
    (lambda: fit((1, 2)), "fit must be given a numpy array as data, not a tuple; convert it with numpy.asarray"),
    (lambda: fit(X, 5), "fit must be given a text or a Path as folder, not 5; give that"),
    (lambda: fit(X, lr="0.1"), "fit must be given a number as lr, not '0.1'; give that"),
    (lambda: fit(X, sizes="8"), "fit must be given an integer or a dictionary as sizes, not '8'; give that"),
    (lambda: fit(X, tell=1), "fit must be given a function or None as tell, not 1; give that"),
    (lambda: fit(X, fast="no"), "fit must be given True or False as fast, not 'no'; give that"),
    (lambda: show({"a": 1}), "show must be given an array of numbers as x, not a dict; give that"),
    (lambda: show("12"), "show must be given an array of numbers as x, not '12'; give that"),
    (lambda: show([[1], [2, 3]]), "show must be given an array of numbers as x, not a list; give that"),
    (lambda: show(None), "show must be given an array of numbers as x, not None; give that"),
    (lambda: Pair(1, secnd="c"), "Pair must be given arguments that it knows, not 'secnd'; did you mean 'second'?"),
    (lambda: Pair("x" * 100), f"Pair must be given an integer as first, not {'x' * 59!r}"[:-1]),
    (lambda: Pair(1).write("x"), "Pair.write must be given a Path as path, not 'x'; give that"),
])
def test_what_cannot_be_meant_is_one_sentence(call, words):
    with pytest.raises(Refusal) as refused:
        call()
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
    assert (refused.value.__cause__ is None and refused.value.__suppress_context__) or refused.value.__context__ is None


def test_kinds_may_be_left_to_the_function():
    @public(kinds=False)
    def lax(rounds: int) -> object:
        return rounds

    assert lax("many") == "many"
    with pytest.raises(Refusal, match="not 'round'; did you mean 'rounds'"):
        lax(round=1)


def test_it_can_still_be_looked_at():
    assert fit.__doc__ == "Fits."
    assert list(inspect.signature(fit).parameters) == ["data", "folder", "lr", "sizes", "tell", "fast", "more"]
    assert dataclasses.replace(Pair(1), first=2) == Pair(2)


def test_an_error_inside_is_left_alone():
    @public
    def broken(x: int) -> None:
        raise TypeError("a fault of the program")

    with pytest.raises(TypeError, match=r"^a fault of the program$"):
        broken(1)


def test_numbers_of_numpy_come_in_as_numbers_of_python():
    _, _, rate, sizes, _, more = fit(X, lr=np.float32(0.5), sizes={"gru": np.int64(4)}, rounds=np.int16(3))
    assert (type(rate), rate) == (float, 0.5)
    assert [type(each) for each in (sizes["gru"], more["rounds"])] == [int, int]
    assert type(Pair(np.int64(2)).first) is int


@public
def read(x: ArrayLike | None = None, y: object = None) -> str:
    return "read"


def test_none_stands_for_an_array_where_it_may():
    assert read(None) == read(x=[1, 2]) == "read"
    with pytest.raises(Refusal, match=r"^read must be given an array of numbers as x, not 'text'; give that$"):
        read("text")
