"""TOML texts: what is read, and the few words for what is not."""
import re

import pytest

from circulant.sim.files import toml


def test_integers_of_64_bits_are_read():
    assert toml.parse(f"a = {(1 << 63) - 1}\n[b]\nc = [{-(1 << 63) + 1}, 1.5, true]") == {
        "a": (1 << 63) - 1, "b": {"c": [-(1 << 63) + 1, 1.5, True]}}


@pytest.mark.parametrize(("text", "words"), [
    ("a = 9" + "0" * 5000, "an integer has too many digits"),
    (f"[[a]]\nb = [{{c = {1 << 63}}}]", "an integer must fit 64 bits"),
    ("a = 0b1" + "0" * 64, "an integer must fit 64 bits"),
    ("a = " + "[" * 5000, "it has too many brackets within each other"),
    ("a = = 1", "Invalid value (at line 1, column 5)"),
])
def test_what_is_refused(text, words):
    with pytest.raises(ValueError, match="^" + re.escape(words)):
        toml.parse(text)
