"""Yosys and ABC, which the wheel of pyosys brings."""
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

__all__ = ["abc", "available", "yosys"]

PROGRAM = "import sys; from pyosys import libyosys; libyosys.run_pass('script ' + sys.argv[1], libyosys.Design())"


def available() -> bool:
    """Whether the wheel of pyosys is installed."""
    return find_spec("pyosys") is not None


def yosys(script: str, folder: Path, result: str, seconds: float | None = None) -> Path:
    """The file that a script of Yosys writes.

    Parameters:
        folder: where it runs.
        result: name of the file.

    Raises:
        subprocess.TimeoutExpired: where it takes longer than ``seconds``.
    """
    (folder / "script.ys").write_text(script)
    done = subprocess.run([sys.executable, "-c", PROGRAM, "script.ys"], cwd=folder, capture_output=True, text=True,
                          check=False, timeout=seconds)
    if done.returncode or not (folder / result).is_file():
        raise RuntimeError(f"Yosys must read the circuit: {(done.stdout + done.stderr)[-2000:]}")
    return folder / result


def abc(commands: str, folder: Path, seconds: float) -> str:
    """The output of ABC, which gets so much time."""
    spec = find_spec("pyosys")
    assert spec is not None and spec.origin is not None, "pyosys brings ABC"
    try:
        done = subprocess.run([str(Path(spec.origin).parent / "yosys-abc"), "-q", commands], cwd=folder, text=True,
                              capture_output=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b"").decode() if isinstance(late.stdout, bytes) else late.stdout or ""
    return done.stdout
