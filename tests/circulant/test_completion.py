import subprocess

import pytest

from circulant.boards.device import devices
from circulant.experiment import shipped


@pytest.fixture
def complete(call, monkeypatch):
    """What bash is offered for the last of some words."""

    def offered(*words):
        monkeypatch.setenv("_CIRCULANT_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", " ".join(["circulant", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        code, out, err = call()
        assert (code, err) == (0, "")
        return [line.partition(",")[2] for line in out.splitlines() if line.startswith("plain,")]

    return offered


def test_commands_experiments_and_devices(complete):
    assert complete("comp") == ["compare", "completion"]
    assert complete("run", "digits") == ["digits-gru"]
    assert set(shipped()) <= set(complete("run", "")) | {""}
    assert complete("generate", "--device", "xc7z") == ["XC7Z020"]
    assert complete("generate", "--device", "l") == [name for name in devices() if name.startswith("L")]
    assert complete("sweep", "rec") == ["recurrent", "recurrent-search"]
    assert "fsdd" in complete("data", "fs") and "fsdd-gru" in complete("data", "fs")


def test_run_folders(complete, call, finished):
    assert complete("compare", "runs/s") == ["runs/small"]


@pytest.mark.parametrize(("shell", "words"), [
    ("bash", "complete -o nosort -F _circulant_completion circulant"), ("zsh", "#compdef circulant"),
    ("fish", "complete --no-files --command circulant")])
def test_the_script_of_each_shell(call, shell, words):
    code, out, err = call("completion", shell)
    assert (code, err) == (0, "") and words in out
    if shell == "bash":
        assert subprocess.run(["bash", "-n"], input=out, text=True, check=False).returncode == 0


def test_other_shells_are_refused(call):
    code, _, err = call("completion", "tcsh")
    assert code == 2 and "'tcsh' is not one of 'bash', 'zsh', 'fish'" in err
