"""Processes as the kernel knows them, for tests that kill some; the command line in this one."""
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from circulant.cli import main


def call(*arguments: object) -> int | str | None:
    """The exit code of a command line of `circulant`."""
    with pytest.raises(SystemExit) as stopped:
        main([*map(str, arguments)])
    return stopped.value.code


def alive(process: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has asked for does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def members(group: int) -> list[int]:
    """The running processes of a group."""
    found = []
    for process in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            if os.getpgid(process) == group and alive(process):
                found.append(process)
        except ProcessLookupError:
            continue
    return found


def soon(true: Callable[[], object], seconds: float = 10.0) -> bool:
    """Whether something becomes true in time."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
