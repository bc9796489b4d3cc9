import errno
import os

import pytest

from circulant.sim.refusal import Refusal, ToolError, listed, nearest, some, unusable


def test_is_a_value_error_with_one_sentence():
    assert issubclass(Refusal, ValueError)
    assert str(Refusal("k must be 1, not 2; choose 1")) == "k must be 1, not 2; choose 1"


@pytest.mark.parametrize(("word", "legal", "hint"), [
    ("sigmod", ["sigmoid", "tanh"], "; did you mean 'sigmoid'?"),
    ("Tanh", ["sigmoid", "tanh"], "; did you mean 'tanh'?"),
    ("tanh", ["sigmoid", "tanh"], "; did you mean 'tanh'?"),
    ("relu", ["sigmoid", "tanh"], ""),
    ("", ["sigmoid"], ""),
    ("sigmoid", [], ""),
    ("epochs", ["a_epochs", "b_epochs", "c_epochs", "d_epochs"],
     "; did you mean 'a_epochs', 'b_epochs' or 'c_epochs'?"),
    ("epochs", ["a_epochs", "bits"], "; did you mean 'a_epochs'?"),
])
def test_nearest(word, legal, hint):
    assert nearest(word, legal) == hint


def test_a_line_for_each_of_a_few_problems():
    assert listed(["a", "b", "a"]) == "a\nb"
    assert listed(map(str, range(5)), most=3) == "0\n1\n2\nand 2 more like these"
    assert listed([]) == ""


def test_a_few_words():
    assert some("ab") == "a, b"
    assert some(map(str, range(4000)), most=3) == "0, 1, 2 and 3,997 more"


def test_nearest_reads_any_iterable():
    assert nearest("hiden", {"hidden": 1, "inputs": 2}) == "; did you mean 'hidden'?"
    assert nearest("hiden", (name for name in ("hidden", "inputs"))) == "; did you mean 'hidden'?"


@pytest.mark.parametrize(("number", "kind", "words"), [
    (errno.ENOENT, Refusal, "a/b cannot be used: No such file or directory; choose another path"),
    (errno.EROFS, Refusal, "a/b cannot be used: Read-only file system; choose another path"),
    (errno.ENOSPC, ToolError, "a/b could not be written: No space left on device; make room, and run the same command "
     "again"),
    (errno.EIO, ToolError, "a/b failed: Input/output error; correct this, and run the same command again"),
])
def test_an_error_of_a_file_is_a_path_or_the_machine(number, kind, words):
    found = unusable("a/b", OSError(number, os.strerror(number)))
    assert (type(found), str(found)) == (kind, words)
    assert not issubclass(ToolError, ValueError), "it is no refusal"
