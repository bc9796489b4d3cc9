"""The benchmark of published stacks and of the papers' layers: which networks it takes, and what it says of a plan."""
import pytest
from click.testing import CliRunner

from benchmarks import stacks
from benchmarks.__main__ import main
from benchmarks.stacks import PAPERS, SHAPES, Shape


@pytest.mark.parametrize(("shape", "inputs", "outputs"), [
    (SHAPES[2], 256, [256, 256]), (PAPERS[0], 153, [512]), (PAPERS[1], 153, [1024]),
    (Shape("lstm", 2, 16, inputs=4, projection=8), 4, [8, 8])])
def test_each_layer_takes_what_the_one_before_gives(shape, inputs, outputs):
    made = stacks.network(shape, 4 if shape.hidden < 64 else 16)
    assert [each.inputs for each in made.stages] == [inputs, *outputs[:-1]]
    assert [each.outputs for each in made.stages] == outputs
    assert all((each.peephole is not None) == shape.peephole for each in made.stages if shape.cell == "lstm")


def test_a_plan_is_told_with_its_floor_and_what_is_published(monkeypatch):
    monkeypatch.setattr(stacks, "SHAPES", (Shape("gru", 2, 16, 30, None),))
    found = stacks.measure(blocks=(4,), multipliers=60, objective="area", simulate=False)
    row, = found["stacks"]
    assert (row["cell"], row["layers"], row["hidden"], row["block"]) == ("gru", 2, 16, 4)
    assert 0 < row["floor_cycles"] < row["cycles_predicted"] and row["multipliers"] <= 60
    assert row["mismatches"] is None, "nothing was played"
    assert found["table"]["2 × GRU 16, k = 4"].endswith("published latency 30 and none")


def test_what_is_aimed_at_is_held_or_missed(monkeypatch):
    aimed, = stacks.AIMED[PAPERS[-1]].values()
    for aims, words in (((1, aimed[1]), "period 1: missed, latency 58: held"),
                        ((99, 1), "period 99: held, latency 1: missed")):
        monkeypatch.setitem(stacks.AIMED, PAPERS[-1], {8: aims})
        found = stacks.measure((len(PAPERS),), papers=True, levels=6, objective="auto", beat_blocks=0, simulate=False)
        assert found["stacks"][0]["multipliers"] <= 64
        assert found["table"]["digits-gru, k = 8"].endswith(f"; aimed at {words}")
    assert [inputs.flow.size for inputs in (stacks.network(shape, 64) for shape in PAPERS[5:7])] == [512, 1024]


def test_streams_are_planned_too(monkeypatch):
    monkeypatch.setattr(stacks, "PAPERS", (Shape("lstm", 1, 16, inputs=8, projection=8, peephole=True),))
    one, three = (stacks.measure(blocks=(4,), papers=True, multipliers=60, streams=streams, simulate=False)
                  for streams in (1, 3))
    assert [*three["table"]] == ["1 × LSTM 16/8, k = 4, 3 streams"]
    assert three["stacks"][0]["cycles_predicted"] < one["stacks"][0]["cycles_predicted"]


def test_a_number_beyond_the_stacks_is_refused():
    said = CliRunner().invoke(main, ["stacks", "--shape", "8", "--predict"])
    assert said.exit_code == 2 and "It must be from 1 to 7, not 8." in said.output
