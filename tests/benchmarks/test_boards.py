from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from benchmarks import boards
from benchmarks.commands import main
from circulant.boards.board import board
from circulant.boards.board import boards as known
from circulant.boards.device import device
from circulant.experiment import load, shipped
from circulant.run.sizing import family
from tests.hw import golden


@pytest.fixture
def built(monkeypatch):
    """Builds of a small network that reach 50 MHz, whose link takes two block RAMs, tables and flip-flops."""
    network = golden.network(4, 8, 8, outputs=10, weight_bits=8, activation_bits=8)
    monkeypatch.setattr(boards, "untrained", lambda experiment: network)
    monkeypatch.setattr(boards, "build", lambda folder, name, out, mhz, slow: SimpleNamespace(
        reached_mhz=50.0, used={"dsps": 12, "block_rams": 20.0, "luts": 3000, "flip_flops": 2000}, seconds=1.26))

    def synthesize(folder, family):
        assert (folder / "manifest.json").exists(), "the design is still there"
        return SimpleNamespace(cells={"SB_MAC16": 12, "SB_RAM40_4K": 18, "SB_LUT4": 2000, "SB_DFF": 1500})

    monkeypatch.setattr(boards, "synthesize", synthesize)
    return network


def test_designs_and_the_errors_of_their_estimates(built):
    found = boards.measure(["icebreaker-digits"])
    assert found["designs"]["icebreaker-digits"] == {
        "device": "iCE40UP5K", "fmax_mhz": 50.0, "dsp": 12, "bram": 20.0, "lut": 3000, "ff": 2000, "seconds": 1.3,
        "link": {"dsp": 0, "bram": 2, "lut": 1000, "ff": 500}}
    assert found["estimate_error"].keys() == {"dsp", "bram", "lut", "ff", "fmax"}
    assert found["estimate_error"]["dsp"] == pytest.approx(6 / 12 - 1), "six multipliers are what the experiment allows"


def test_the_command_needs_no_run_folders(built):
    done = CliRunner().invoke(main, ["boards", "--design", "icebreaker-digits"])
    assert done.exit_code == 0 and "50.0 MHz" in done.output, done.output


def test_every_design_is_a_shipped_experiment_on_a_known_board_of_its_family():
    for each in boards.DESIGNS.values():
        assert each.experiment in shipped() and each.board in known()
        assert family(load(each.experiment, each.sets)) == device(board(each.board).device).family
