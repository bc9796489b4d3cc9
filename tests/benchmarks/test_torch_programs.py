import pytest

from benchmarks.torch_programs import PROGRAMS, judge

REFUSED = {
    "all_steps_flattened", "autoencoder_expand", "autoencoder_repeat", "both_directions_in_words", "called_twice",
    "cell_state", "channels_first", "channels_first_permuted", "channels_last", "difference_of_branches",
    "divided_by_255", "doubled_and_shifted", "gated", "glu", "glu_in_chunks", "gru_cell_in_a_loop",
    "hardswish_in_words", "head_within_a_loop", "kept_cell", "kept_state", "lstm_cell_in_a_loop", "means_one_by_one",
    "negated", "normalised", "normalised_per_feature", "one_minus", "packed", "packed_last", "reversed_in_time",
    "reversed_last", "rnn_cell_in_a_loop", "scaled_output", "silu_in_words", "sliced_features", "split_features",
    "squeeze_excite", "stacked", "state_as_input", "steps_then_convolution", "sum_of_pixels", "sum_over_time",
    "two_heads", "two_inputs", "width_as_steps"}
"""Those that nothing is there for yet."""


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_program_converts_or_is_refused(program):
    verdict = judge(program)
    assert verdict.status == ("refused" if program.name in REFUSED else "right"), verdict.note
