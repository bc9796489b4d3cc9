"""Data of a user's function: arrays by the keys of an .npz file, or a Dataset; all else is refused with the way out."""
import numpy as np
import pytest

from circulant.sim.refusal import Refusal
from circulant.training.data import Dataset, load_data

HEAD = """
import numpy as np
from circulant.training.data import Dataset

x = np.arange(60, dtype=np.float32).reshape(20, 3)
y = np.arange(20) % 4
"""


@pytest.fixture
def load(tmp_path):
    def made(body, **options):
        (tmp_path / "mine.py").write_text(HEAD + body)
        return load_data("python", path=f"{tmp_path}/mine.py:load", **options)

    return made


def test_arrays_are_split_as_those_of_a_file(load, tmp_path):
    body = "def load(scale=1):\n    return {'x': x * scale, 'y': y, 'symbols': ['a', 'b', 'c', 'd']}\n"
    data = load(body, arguments={"scale": 2}, seed=3)
    x = np.arange(60, dtype=np.float32).reshape(20, 3)
    np.savez(tmp_path / "mine.npz", x=2 * x, y=np.arange(20) % 4, symbols=list("abcd"))
    wanted = load_data("npz", path=str(tmp_path / "mine.npz"), seed=3)
    assert (data.name, data.classes, data.symbols) == ("mine", 4, ("a", "b", "c", "d"))
    assert data.digest() == wanted.digest()
    assert len(load(body, subset=8).train_x) == 8


def test_a_data_set_is_taken_as_it_is(load):
    body = "def load():\n    return Dataset('own', x, y, x, y, 4)\n"
    assert isinstance(load(body), Dataset)
    assert load(body).name == "own"
    with pytest.raises(Refusal, match=r"mine\.py:load must return arrays for data\.subset = 3 to choose from, but it "):
        load(body, subset=3)


@pytest.mark.parametrize(("body", "words"), [
    ("load = 3", r"data\.path must name a function, but 'load' of .*mine\.py is a int; name another$"),
    ("def load():\n    return x, y\n", r"must return a circulant\.Dataset, or a dictionary .*, not a tuple of 2; see"),
    ("def load():\n    return {'x': [[1], [1, 2]], 'y': y}\n", r"mine\.py: 'x' must be an array, .*; pad what is"),
    ("def load():\n    return {'x': np.array([None]), 'y': y}\n", r"'x' must be an array of numbers or names, not"),
    ("def load():\n    return {'x': x, 'z': y}\n", r"mine\.py: a key must be one of .*, not z"),
    ("def load():\n    return {'x': x}\n", r"mine\.py must hold the keys x, y, but lacks y; it has x$"),
    ("def load():\n    return open('/no/such')\n", r"mine\.py, line 8: FileNotFoundError: .*/no/such"),
    ("def load(size):\n    return size\n", r"missing 1 required positional argument: 'size'; correct it there"),
])
def test_refused(load, body, words):
    with pytest.raises(Refusal, match=words):
        load(body)
