import subprocess
import sys

from circulant.sim import child, guard
from tests.processes import alive, soon


def test_groups_that_began_and_did_not_end_are_left() -> None:
    assert guard.left(["+12\n", "+345\n", "-12\n", "+6\n"]) == {345, 6}
    assert guard.left([]) == set()


def test_the_groups_that_are_left_end_with_its_input() -> None:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as one, \
            subprocess.Popen(["sleep", "60"], start_new_session=True) as other:
        subprocess.run([sys.executable, "-I", "-S", child.GUARD], text=True, check=True, timeout=60,
                       input=f"+{one.pid}\n+{other.pid}\n-{other.pid}\n")
        assert soon(lambda: not alive(one.pid)) and alive(other.pid)
        other.kill()
