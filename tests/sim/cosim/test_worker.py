"""What happens to the processes of a simulation when it is interrupted, or its parent killed."""
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from circulant.sim.cosim import build, simulate, verify
from circulant.sim.refusal import ToolError
from tests.sim.cosim.accumulator import Fault, vectors, write

FOREVER = 10**9

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are found in /proc")


def simulations(folder: Path) -> list[int]:
    """Processes whose current folder is under ``folder``."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").resolve().is_relative_to(folder):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def gone(folder: Path) -> bool:
    deadline = time.monotonic() + 10
    while simulations(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not simulations(folder)


def test_an_interrupt_ends_the_simulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))

    def interrupt(stage: str, done: int, total: int) -> None:
        if stage == "simulate" and simulations(temporary):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify(write(tmp_path / "design", Fault.HANG), vectors(), patience=FOREVER, progress=interrupt)
    assert gone(temporary)
    assert list(temporary.iterdir()) == []


def test_a_killed_parent_takes_the_simulator_with_it(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    folder = write(tmp_path / "design", Fault.HANG)
    vectors().save(tmp_path / "vectors.npz")
    script = ("import sys; from circulant.sim.cosim import verify; verify(sys.argv[1], sys.argv[2], "
              f"patience={FOREVER}, progress=lambda *report: print(*report, flush=True))")
    with subprocess.Popen([sys.executable, "-c", script, str(folder), str(tmp_path / "vectors.npz")],
                          env={**os.environ, "TMPDIR": str(temporary)}, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        while not simulations(temporary):
            assert parent.stdout.readline(), "the parent has to be there until it is killed"
        parent.send_signal(signal.SIGKILL)
    assert gone(temporary)


def test_a_simulation_without_progress_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(simulate, "SECONDS", 1)
    folder = write(tmp_path / "design", Fault.HANG)
    with pytest.raises(ToolError, match=rf"^The simulator must end within 1 s, but it was still at work on simulating "
                                        rf"{folder}/accumulator\.v and was stopped; check whether the machine is"):
        verify(folder, vectors(), patience=FOREVER)
    assert gone(temporary)
    assert list(temporary.iterdir()) == []


def test_a_build_that_stands_still_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "SECONDS", 0)
    monkeypatch.setenv("CIRCULANT_CACHE", str(tmp_path / "cache"))
    folder = write(tmp_path / "design")
    with pytest.raises(ToolError, match=rf"^Verilator must end within 0 s, but it was still at work on compiling "
                                        rf"{folder}/accumulator\.v .*and was stopped; "):
        verify(folder, vectors())
    assert [path for path in (tmp_path / "cache" / "verilator").iterdir() if path.is_dir()] == []
