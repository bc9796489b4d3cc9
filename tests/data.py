"""Where tests of real data find them, and what becomes of those tests where they do not."""
import os

import pytest

from circulant.sim.files.data_folder import data_folder

__all__ = ["real"]


def real(name: str) -> pytest.MarkDecorator:
    """The mark of a test that reads a data set: it is skipped, and counted, where the data are not at hand.

    Where CIRCULANT_DATA says where they are, they are expected: the test runs, and fails when they are missing.
    """
    missing = not (data_folder() / name).is_dir()
    return pytest.mark.skipif(missing and not os.environ.get("CIRCULANT_DATA"), reason=(
        f"{data_folder() / name} is absent; name the folder of data sets in CIRCULANT_DATA"))
