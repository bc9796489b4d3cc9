"""The commands of boards: what they refuse before a tool or a board is asked for."""
from dataclasses import replace

import pytest

from circulant.run.run_folder import Run
from circulant.training.settings import DataSettings
from tests.circulant.conftest import make_generated, make_quantized, make_trained


@pytest.mark.parametrize("name", ["fsdd", "saved"])
def test_the_demonstration_is_of_digits_alone(fresh, call, name):
    """The network of something else would be shown as noise in which a digit is read."""
    run = Run(fresh.folder, replace(fresh.experiment, data=DataSettings(name)))
    for make in (make_trained, make_quantized, make_generated):
        make(run)
    code, out, err = call("demo", "digits", run.folder)
    assert (code, out) == (2, "")
    assert err == ("The demonstration shows handwritten digits, data.name = 'digits' or 'mnist', but the data of "
                   f"{run.folder} are {name!r}; take a run of digits-gru\n")
