import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from circulant.sweep.processes import Processes, side_by_side
from tests.processes import alive, soon

AT_WORK = """
import os, time
from circulant.exits import interruptible
from circulant.sim.files import temporaries
from circulant.sweep.processes import Processes

def work():
    with temporaries.folder():
        time.sleep(60)

if __name__ == "__main__":
    with interruptible(), Processes(2) as processes:
        print(*{each.result() for each in [processes.submit(os.getpid) for _ in range(4)]}, flush=True)
        processes.submit(work).result()
"""


def test_tasks_of_two_phases_share_the_processes():
    with Processes(1) as alone:
        assert dict(side_by_side([os.getpid] * 2, alone)) == {0: os.getpid(), 1: os.getpid()}
    with Processes(2) as processes:
        first, second = (set(dict(side_by_side([os.getpid] * 8, processes)).values()) for _ in range(2))
    assert os.getpid() not in first
    assert len(first | second) <= 2, "the second phase starts none of its own"


def test_the_end_of_a_process_is_a_reason():
    with Processes(2) as processes:
        found = dict(side_by_side([partial(os._exit, 3)] * 2, processes))
        later = dict(side_by_side([os.getpid], processes))
    assert set(found) == {0, 1}
    for result in found.values():
        assert result["reason"].startswith("BrokenProcessPool: ")
    assert isinstance(later[0], int), "the next tasks get new processes"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are found in /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_they_end_with_a_process_that_is_killed(how, tmp_path):
    """With one that is interrupted, their folders go, too."""
    (tmp_path / "work.py").write_text(AT_WORK)
    (tmp_path / "temporary").mkdir()
    with subprocess.Popen([sys.executable, tmp_path / "work.py"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, env={**os.environ, "TMPDIR": str(tmp_path / "temporary"),
                                          "PYTHONPATH": os.pathsep.join(sys.path)}) as parent:
        numbers = [int(word) for word in parent.stdout.readline().split()]
        assert numbers and all(map(alive, numbers))
        # A process that asks for the temporary folder first tries it with a file of its own, which is not waited for.
        assert soon(lambda: list((tmp_path / "temporary").glob(".circulant.*")))
        parent.send_signal(how)
    assert soon(lambda: not any(map(alive, numbers))), "no process may be left"
    assert (how == signal.SIGKILL) == bool(os.listdir(tmp_path / "temporary"))
