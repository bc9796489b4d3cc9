"""A run as one file: what another machine needs to verify it, and the command that does."""
import importlib.metadata
import tempfile
import zipfile
from pathlib import Path
from typing import TypedDict

import click
from rich.console import Console

from circulant.arguments import JSON, say
from circulant.completion import runs as run_folders
from circulant.exits import WRONG
from circulant.experiment import FILE, load
from circulant.progress import Bars, Show, silent
from circulant.run.integrity import played_of, require_verified
from circulant.run.run_folder import STEPS, Run, recorded
from circulant.sim.files.files import LIMIT, opened
from circulant.sim.files.writing import atomic_bytes
from circulant.sim.refusal import Refusal

__all__ = ["check", "checked", "pack", "share"]

LEFT_OUT = ("checkpoint", "evaluations", "boards", "asic", "tensorboard")
"""Folders of a run that no step after the training needs, or that another command makes again."""

MEASURED = ("words", "mismatches", "cycles_per_step", "cycles_per_sequence", "latency_spaced", "latency_contiguous")
"""Figures of a verification that a second one must repeat."""


def pack(run: Run, target: Path) -> list[str]:
    """Write the files of a verified run into one archive (ZIP); returns their names.

    Raises:
        Refusal: as `circulant.run.integrity.require_verified`, when a step is missing or a file has changed.
    """
    require_verified(run, *(recorded(run, step) for step in list(STEPS)[1:]))
    paths = [path for path in sorted(run.folder.rglob("*")) if path.is_file() and not path.is_symlink()
             and path.relative_to(run.folder).parts[0] not in LEFT_OUT and path.absolute() != target.absolute()]
    with tempfile.SpooledTemporaryFile(1 << 26) as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in paths:
                archive.write(path, path.relative_to(run.folder).as_posix())
        file.seek(0)
        atomic_bytes(target, file.read())
    return [path.relative_to(run.folder).as_posix() for path in paths]


def unpack(file: Path, folder: Path) -> Run:
    """The run of an archive, unpacked into ``folder``.

    Raises:
        Refusal: when the file is no such archive, is damaged or too large, or names a file outside the folder.
    """
    try:
        with opened(file) as stream, zipfile.ZipFile(stream) as archive:
            entries = archive.infolist()
            outside = [each.filename for each in entries if Path(each.filename).is_absolute()
                       or ".." in Path(each.filename).parts or "\\" in each.filename]
            if outside or sum(each.file_size for each in entries) > LIMIT:
                raise Refusal(f"{file} must hold files of one folder, {LIMIT >> 30} GiB at most, but "
                              + (f"names {outside[0]!r}" if outside else "holds more")
                              + "; pack it with circulant share")
            archive.extractall(folder)
    except (OSError, zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise Refusal(f"{file} must be an archive that circulant share wrote, but it cannot be read as one ({error}); "
                      "fetch it again") from None
    if not (folder / FILE).is_file():
        raise Refusal(f"{file} must hold a run with {FILE}, but does not; pack a run folder with circulant share")
    return Run(folder, load(folder))


class Checked(TypedDict):
    """A second verification: ``golden`` has values computed again and those that differ, ``simulated`` each of
    `MEASURED` as it was recorded and as it is, ``versions`` the packages that the run was made with, and those here,
    where they differ; ``same`` says whether everything is."""

    network: str
    golden: dict[str, int]
    simulated: dict[str, tuple[float, float]]
    versions: dict[str, tuple[str, str]]
    same: bool


def checked(run: Run, show: Show = silent) -> Checked:
    """A second verification of a run: hashes of all files, every output of the golden model computed again, and the
    Verilog simulated again.

    Raises:
        Refusal: as `circulant.run.integrity.require_verified`.
    """
    from circulant.run import steps

    quantized, generated, simulated = (recorded(run, step) for step in list(STEPS)[1:])
    require_verified(run, quantized, generated, simulated)
    network, vectors = played_of(run, quantized)
    show("golden model", 0, 0)
    again = network.run_integers(vectors.inputs, vectors.lengths)
    differ = int((again != vectors.outputs).sum()) if again.shape == vectors.outputs.shape else again.size
    now = steps.simulate(run, show)["verification"]
    figures = {name: (simulated["verification"][name], now[name]) for name in MEASURED}
    return {"network": network.hash, "golden": {"values": again.size, "differ": differ}, "simulated": figures,
            "versions": _versions(run),
            "same": not differ and not now["mismatches"] and all(was == is_ for was, is_ in figures.values())}


def _versions(run: Run) -> dict[str, tuple[str, str]]:
    from circulant.sim import artifact

    if not (path := run.path("report.json")).is_file():
        return {}
    made = artifact.read_json(path, "circulant-report", 1).get("versions", {})
    here = {name: _version(name) for name in made if name not in ("python", "simulator")}
    return {name: (made[name], version) for name, version in here.items() if version != made[name]}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


@click.command("share", short_help="Pack a verified run into one file")
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path, file_okay=False), shell_complete=run_folders)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="The file.  [default: RUN.zip]")
@JSON
def share(folder: Path, out: Path | None, as_json: bool) -> int:
    """Pack experiment, network, vectors, Verilog, figures and versions of a verified run into one file, which
    `circulant check` verifies on another machine.

    The file also holds the Python files and the data that the run folder keeps: look into it before you publish it.

    \b
    Example:
      circulant share runs/digits-gru --out digits-gru.zip
    """
    if not (folder / FILE).is_file():
        raise Refusal(f"A run must be a folder with {FILE} in it, but {folder} is none; name a folder that "
                      "`circulant run` wrote")
    target = out or folder.with_name(f"{folder.absolute().name}.zip")
    names = pack(Run(folder, load(folder)), target)
    size = target.stat().st_size
    say({"file": target, "files": names, "bytes": size}, as_json,
        f"{target}: {len(names)} files, {size / 1e6:.1f} MB; verify it elsewhere with: circulant check {target.name}")
    return 0


@click.command("check", short_help="Verify a run that another machine packed")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Also keep the run in this new folder.  [default: a temporary one]")
@JSON
def check(file: Path, out: Path | None, as_json: bool) -> int:
    """Verify a file of `circulant share`: hashes of all files, the golden model computed again, the Verilog simulated
    again, and the figures as they were. Exits with 1 if anything differs.

    Simulating a design executes it: see docs/security.md. Nothing is trained again.

    \b
    Example:
      circulant check digits-gru.zip
    """
    if out is not None and out.exists():
        raise Refusal(f"The folder of --out must be new, but {out} exists; name another")
    with tempfile.TemporaryDirectory() as temporary, Bars(Console(stderr=True)) as bars:
        found = checked(unpack(file, out or Path(temporary) / "run"), bars)
    golden, figures = found["golden"], found["simulated"]
    say(found, as_json,
        f"network {found['network'][:12]}, every file as it was hashed",
        f"golden model: {golden['values']:,} outputs computed again, {golden['differ']:,} differ",
        *(f"{name.replace('_', ' ')}: {was:,.6g} recorded, {now:,.6g} here" for name, (was, now) in figures.items()),
        *(f"version of {name}: {was} there, {here} here" for name, (was, here) in found["versions"].items()),
        f"{file}: " + ("verified" if found["same"] else "DIFFERS from what was recorded"))
    return 0 if found["same"] else WRONG
