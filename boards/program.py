"""A bitstream onto a board that hangs at a USB cable, by openFPGALoader."""
from pathlib import Path

from circulant.boards.board import Board
from circulant.boards.tools import find
from circulant.sim import child
from circulant.sim.refusal import ToolError

__all__ = ["program"]

SECONDS = 600.0


def program(board: Board, file: str | Path, *, flash: bool = False) -> None:
    """Load a bitstream.

    Parameters:
        flash: into the board's flash memory, from which it comes back after power-up; else into the device, until
            power is lost.

    Raises:
        Refusal: when openFPGALoader is missing.
        ToolError: when it fails, because no board is connected for example.
    """
    tool = find("openfpgaloader-cli", "openFPGALoader", package="openfpgaloader")
    command = [tool, "-b", board.loader, *(["-f"] if flash else []), str(Path(file).resolve())]
    done = child.run(command, step=f"programming {board.name}", seconds=SECONDS, folder=Path(file).resolve().parent)
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())[-200:]
        raise ToolError(f"openFPGALoader failed with exit code {done.returncode} when it programmed {board.name}: "
                        f"{said}; check that the board is connected and powered, that libusb-1.0 is installed and "
                        "that you may open the cable's device, and run the same command again")
