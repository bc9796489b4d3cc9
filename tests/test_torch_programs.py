import pytest

import circulant
from circulant.training import export
from tests.torch_programs import PROGRAMS, judge

REFUSED = {
    "state_as_input", "kept_cell", "cell_state", "all_steps_flattened", "steps_then_convolution", "sum_over_time"}
"""Those that nothing is there for yet, and a sum that is right for the steps of the sample alone."""


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_program_converts_or_is_refused(program):
    verdict = judge(program)
    assert verdict.status == ("refused" if program.name in REFUSED else "right"), verdict.note


CONVERTED = [each for each in PROGRAMS if each.name not in REFUSED]


@pytest.mark.soak
@pytest.mark.parametrize("program", CONVERTED, ids=lambda program: program.name)
def test_what_converts_also_generates(program):
    assert circulant.generate(export(program.model(), program.sample()), multipliers=40).multipliers <= 40


@pytest.mark.soak
@pytest.mark.parametrize("program", CONVERTED[13::9], ids=lambda program: program.name)
def test_some_are_exact_under_verilator(program, tmp_path):
    network = export(program.model(), program.sample())
    circulant.generate(network, multipliers=40).write(tmp_path)
    sample = program.sample()
    given = dict(zip((each.name for each in network.inputs), sample, strict=True)) if isinstance(sample, tuple) else (
        sample.numpy())
    checked = circulant.verify(tmp_path, network.vectors(given))
    assert checked.words > 0 and checked.mismatches == 0, checked.first
