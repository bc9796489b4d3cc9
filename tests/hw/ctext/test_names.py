import pytest

from circulant.hw.ctext.names import identifier, identifiers


@pytest.mark.parametrize(("name", "expected"), [
    ("digits-gru", "digits_gru"), ("  a b ", "a_b"), ("größe", "gr_e"), ("2nd", "network_2nd"), ("", "network"),
    ("*/", "network"),
    ("test", "network_test"), ("Test", "network_Test"), ("_x", "x"),
    ("int", "network_int"), ("for", "network_for"), ("class", "network_class"), ("errno", "network_errno")])
def test_a_name_becomes_an_identifier(name, expected):
    assert identifier(name) == expected


def test_layers_keep_their_names_where_these_differ():
    assert identifiers(["gru", "out"]) == ["gru", "out"]


@pytest.mark.parametrize("names", [["a-b", "a b"], ["a", "a_input"], ["x_y", "x", "z"]])
def test_layers_are_numbered_where_names_would_clash(names):
    assert identifiers(names) == ["layer1", "layer2", "layer3"][:len(names)]
