"""The public names of the folder."""
import circulant.training as training


def test_every_public_name_exists_once():
    assert len(set(training.__all__)) == len(training.__all__)
    for name in training.__all__:
        assert getattr(training, name).__doc__, f"{name} must exist and say what it is"
