import ast
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from circulant.sim import child
from circulant.sim.refusal import ToolError
from tests.processes import alive, members, soon
from tests.sources import ROOT, python_files, tree

LONG = "from circulant.sim import child; child.run(['sh', '-c', 'echo $$; sleep 60 & wait'], step='', seconds=60)"
"""A program that says its number, its child, and one that waits for both."""


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


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are found in /proc")
def test_a_program_and_its_children_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    program = LONG.replace("echo $$", f"echo $$ > {tmp_path}/began; mv {tmp_path}/began {tmp_path}/number")
    with subprocess.Popen([sys.executable, "-c", program]) as parent:
        assert soon((tmp_path / "number").exists, 60)
        group = int((tmp_path / "number").read_text())
        assert soon(lambda: len(members(group)) == 2), "the program and its child"
        parent.send_signal(signal.SIGKILL)
    assert soon(lambda: not members(group)), "no process of the group may be left"


def test_a_program_does_not_begin_before_the_guard_knows_it(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    program = ("import os, signal; from circulant.sim import child; "
               "child._tell = lambda word='': os.kill(os.getpid(), signal.SIGKILL) if word else None; "
               f"child.run(['touch', {str(mark)!r}], step='', seconds=9)")
    assert subprocess.run([sys.executable, "-c", program]).returncode == -signal.SIGKILL
    time.sleep(0.3)
    assert not mark.exists()


def test_a_program_ends_with_a_block_that_leaves_it_running() -> None:
    with child.started(["sh", "-c", "sleep 60 & echo $!; wait"], step="a test") as process:
        assert process.stdout is not None
        below = int(process.stdout.readline())
        assert alive(below)
    assert process.returncode == -signal.SIGKILL
    assert soon(lambda: not alive(below))


def test_the_guard_ends_with_its_process() -> None:
    """It says nothing, and no warning is given of it."""
    program = LONG.replace("echo $$; sleep 60 & wait", "exit 0") + (
        "; print(*(each.pid for each in child._GUARDS.values()))")
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    assert not alive(int(done.stdout)) and not done.stderr


FREE = {"sim/child.py", "sim/cosim/worker.py", "sim/cosim/objcache.py"}
"""Sources that start programs themselves: the mechanism, and what runs within a group that it has started."""


def test_programs_are_started_in_one_place() -> None:
    """Everything else would have to end its children, too."""
    wrong = []
    for path in python_files(*(ROOT / name for name in ("circulant", "training", "sim", "hw", "boards"))):
        calls = [node for node in ast.walk(tree(path)) if isinstance(node, ast.Attribute) and (
            getattr(node.value, "id", ""), node.attr) in {
                *(("subprocess", name) for name in ("Popen", "run", "call", "check_call", "check_output")),
                *(("os", name) for name in ("system", "popen", "fork", "posix_spawn"))}]
        if calls and str(path.relative_to(ROOT)) not in FREE:
            wrong += [f"{path.relative_to(ROOT)}, line {node.lineno}" for node in calls]
    assert wrong == []


def test_programs_run_where_the_guard_was_killed(tmp_path: Path) -> None:
    program = ("import os, signal; from circulant.sim import child; child.run(['true'], step='', seconds=9); "
               "guard, = child._GUARDS.values(); guard.kill(); guard.wait(); "
               "print(child.run(['echo', 'said'], step='', seconds=9).stdout)")
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "said" and not done.stderr
