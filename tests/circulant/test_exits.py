"""How the command line ends: the exit code of each error, what is said of it, and standard streams that fail."""
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from circulant.exits import code_of, end_of
from circulant.sim.cosim import SimulationError
from circulant.sim.files.files import Irregular
from circulant.sim.refusal import Refusal, ToolError
from tests.processes import alive, soon

PROGRAM = [sys.executable, "-c", "from circulant.cli import main; main()"]


@pytest.mark.parametrize(("error", "code", "words"), [
    (SimulationError("A beat must move"), 1, "A beat must move"),
    (Refusal("k must be 1, not 2"), 2, "k must be 1, not 2"),
    (click.ClickException("no such command"), 2, "Error: no such command"),
    (ToolError("g++ failed: no memory; buy some"), 3, "g++ failed: no memory; buy some"),
    (OSError(28, "No space left on device", "weights.npz"), 3, "weights.npz could not be written: No space left on "
     "device; make room, and run the same command again"),
    (OSError(28, "No space left on device"), 3, "A file could not be written: No space left on device; make room, and "
     "run the same command again"),
    (OSError(5, "Input/output error", "model.pt"), 3, "model.pt failed: Input/output error; correct this, and run the "
     "same command again"),
    (PermissionError(13, "Permission denied", "/proc/x"), 2, "/proc/x cannot be used: Permission denied; choose "
     "another path"),
    (Irregular("net.onnx", "it is a pipe"), 2,
     "net.onnx must be a file that can be read, but it is a pipe; give another"),
    (IsADirectoryError(21, "Is a directory", "runs"), 2, "runs cannot be used: Is a directory; choose another path"),
    (KeyboardInterrupt(), 130, "Interrupted; what earlier steps wrote stays usable."),
    (KeyboardInterrupt("Interrupted; go on"), 130, "Interrupted; go on"),
])
def test_each_error_has_its_code_and_its_sentence(error, code, words):
    assert code_of(error) == code
    assert end_of(error) == (code, words)


def chained(outer, inner):
    outer.__context__ = inner
    return outer


def test_what_click_makes_of_an_error_counts_as_that_error():
    assert end_of(chained(click.Abort(), KeyboardInterrupt("Interrupted; go on"))) == (130, "Interrupted; go on")
    assert code_of(chained(click.Abort(), EOFError("end of file"))) == 3
    assert code_of(chained(SystemExit(1), BrokenPipeError(32, "Broken pipe"))) == 3, "1 is a wrong circuit alone"


def raised(error):
    try:
        raise error
    except type(error) as caught:
        return caught


def test_an_unexpected_error_is_one_sentence_with_a_traceback_in_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("CIRCULANT_DEBUG", raising=False)
    code, words = end_of(raised(ZeroDivisionError("by\n0")))
    found = re.fullmatch(r"circulant failed unexpectedly \(ZeroDivisionError: by 0\); please report it with the "
                         r"traceback in (.*\.txt)", words)
    assert code == 3 and found, words
    assert Path(found[1]).parent == tmp_path
    assert Path(found[1]).read_text().startswith("Traceback (most recent call last)")


def test_where_no_file_can_be_written_it_says_how_to_see_the_traceback(monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    monkeypatch.delenv("CIRCULANT_DEBUG", raising=False)
    assert end_of(raised(MemoryError())).words == (
        "circulant failed unexpectedly (MemoryError); run it again with CIRCULANT_DEBUG=1 to see the traceback, and "
        "report it with that")


def test_debugging_shows_the_traceback(monkeypatch):
    monkeypatch.setenv("CIRCULANT_DEBUG", "1")
    words = end_of(raised(KeyError("x"))).words
    assert words.startswith("Traceback (most recent call last)")
    assert words.endswith("circulant failed unexpectedly (KeyError: 'x'); please report it with the traceback above")


def shell(words, tmp_path, **environment):
    """A line of the shell with the command line as "$@"; exit code, stdout and stderr."""
    done = subprocess.run(["bash", "-c", words, "-", *PROGRAM], cwd=tmp_path, capture_output=True,
                          env={**os.environ, **environment})
    assert b"Traceback" not in done.stderr and b"Exception ignored" not in done.stderr, done.stderr
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_nobody_needs_to_read_to_the_end(tmp_path):
    code, out, err = shell('"$@" --help | head -n 1; exit ${PIPESTATUS[0]}', tmp_path)
    assert (code, len(out.splitlines()), err) == (0, 1, "")
    assert shell('"$@" --help | true; exit ${PIPESTATUS[0]}', tmp_path) == (0, "", "")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_closed_streams(tmp_path, closed):
    code, out, err = shell(f'"$@" report {closed}', tmp_path)
    assert (code, out) == (2, "")
    assert ("model.pt is missing" in err) == ("2>" not in closed)
    code, out, err = shell(f'"$@" --help {closed}', tmp_path)
    assert (code, "Commands:" in out, err) == (0, ">&-" not in closed.replace("2>&-", ""), "")


def test_a_child_does_not_write_into_what_took_the_place_of_a_closed_stream(tmp_path):
    program = ("import os; from circulant.exits import steady_streams; steady_streams(); file = open('mine', 'w')\n"
               "os.system('echo from the child'); file.write('mine')")
    subprocess.run(["bash", "-c", '"$@" >&-', "-", sys.executable, "-c", program], cwd=tmp_path, check=True)
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_full_disk_behind_stdout(tmp_path):
    code, _, err = shell('"$@" --help > /dev/full', tmp_path)
    assert (code, err) == (3, "Standard output could not be written: No space left on device; make room, and run the "
                              "same command again\n")


def test_characters_that_a_terminal_lacks(tmp_path, finished):
    code, out, err = shell(f'"$@" report {finished.folder}', tmp_path, LC_ALL="C", PYTHONIOENCODING="ascii")
    assert (code, err) == (0, "")
    assert "weights" in out


def test_a_full_disk_names_the_file(finished):
    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    done = subprocess.run([*PROGRAM, "report", finished.folder], capture_output=True, text=True, preexec_fn=small)
    assert (done.returncode, done.stdout) == (3, "")
    assert re.fullmatch(rf"{finished.folder}/\S+\.(png|html) could not be written: File too large; make room, and run "
                        r"the same command again\n", done.stderr)
    assert not list(finished.folder.glob(".*")), "a file that is not whole goes"


AT_WORK = """
import click
from circulant import cli
from circulant.sim import child
from circulant.sim.files import temporaries

@click.command
def work():
    with temporaries.folder() as folder:
        (folder / "big").write_text("")
        with child.started(["sleep", "60"], step="a test") as process:
            print(process.pid, flush=True)
            process.wait()

cli.COMMANDS["work"] = "__main__:work"
cli.main(["work"])
"""


def ignoring(*signals):
    """As a shell starts a background job, or nohup any; no other signal is ignored, however the tests were started."""
    return lambda: [signal.signal(each, signal.SIG_IGN if each in signals else signal.SIG_DFL)
                    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]


@pytest.fixture
def at_work(tmp_path):
    """Starts a command whose child runs and whose folder is there; kills what is left."""
    running = []

    def start(*ignored):
        process = subprocess.Popen(
            [sys.executable, "-c", AT_WORK], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "TMPDIR": str(tmp_path)}, preexec_fn=ignoring(*ignored))
        running.append(process)
        return process, int(process.stdout.readline())

    yield start
    for process in running:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_interrupted_in_the_background_leaves_nothing(at_work, tmp_path, how):
    process, below = at_work(signal.SIGINT)
    process.send_signal(how)
    process.send_signal(how)  # As `timeout` does.
    said = process.communicate(timeout=60)[1]
    assert (process.returncode, said.strip()) == (130, "Interrupted; what earlier steps wrote stays usable.")
    assert not alive(below) and list(tmp_path.iterdir()) == []


def test_a_command_under_nohup_outlives_its_terminal(at_work):
    process, below = at_work(signal.SIGHUP)
    process.send_signal(signal.SIGHUP)
    assert not soon(lambda: not alive(below), 0.5) and process.poll() is None


def test_the_next_command_sweeps_what_a_killed_one_left(at_work, tmp_path):
    process, below = at_work()
    process.kill()
    process.wait()
    assert soon(lambda: not alive(below))
    assert len(list(tmp_path.iterdir())) == 1
    subprocess.run([*PROGRAM, "--version"], env={**os.environ, "TMPDIR": str(tmp_path)}, check=True,
                   stdout=subprocess.DEVNULL)
    assert list(tmp_path.iterdir()) == []
