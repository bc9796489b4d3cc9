import os
import time
from pathlib import Path

import pytest

from circulant.sim import child
from circulant.sim.refusal import ToolError


def test_a_program_gives_its_status_and_what_it_says(tmp_path: Path) -> None:
    done = child.run(["sh", "-c", "pwd; echo no >&2; exit 3"], step="a test", seconds=60, folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (3, f"{tmp_path}\n", "no\n")


def test_its_input_is_empty_and_its_environment_that_which_is_given() -> None:
    environment = {**os.environ, "MINE": "1"}
    done = child.run(["sh", "-c", "cat; echo $MINE"], step="a test", seconds=60, environment=environment)
    assert done.stdout == "1\n"


def test_one_that_takes_too_long_ends_with_its_children(tmp_path: Path) -> None:
    mark, start = tmp_path / "mark", time.monotonic()
    with pytest.raises(ToolError, match=r"^sh must end within 1 s, but it was still at work on compiling top\.v and "
                                        r"was stopped; check whether the machine is overloaded, or the input larger "
                                        r"than it should be$"):
        child.run(["sh", "-c", f"(sleep 3; touch {mark}) & wait"], step="compiling top.v", seconds=1)
    assert time.monotonic() - start < 3
    time.sleep(3)
    assert not mark.exists()


def test_one_that_cannot_start_is_named(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("")
    with pytest.raises(ToolError, match=rf"^tool must start for compiling top\.v, but it does not \(Permission denied\)"
                                        rf"; check that {tmp_path}/tool can be executed$"):
        child.run([tmp_path / "tool"], step="compiling top.v", seconds=1)


def test_children_of_a_program_that_has_ended_are_stopped_too(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with pytest.raises(ToolError, match=r"^sh must end within 1 s"):
        child.run(["sh", "-c", f"(sleep 2; touch {mark}) & echo said"], step="compiling", seconds=1)
    time.sleep(1.5)
    assert not mark.exists()
