import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from circulant.sim.cosim import build as module
from circulant.sim.cosim import objcache
from circulant.sim.cosim.build import build
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.cosim.toolchain import Toolchain
from circulant.sim.files import temporaries
from circulant.sim.refusal import Refusal
from tests.sim.cosim.accumulator import write, write_image

TOOLCHAIN = Toolchain("Verilator 5", None, Path("libraries"), "fingerprint")


class Compiler:
    """Stands for Verilator and g++: takes a moment, counts, and can fail."""

    def __init__(self) -> None:
        self.calls = 0
        self.folders: list[Path] = []
        self.error: BaseException | None = None

    def __call__(self, folder: Path, manifest: Manifest, toolchain: Toolchain, poll: Callable[[], None], *,
                 waves: bool = False, registers: bool = False) -> Path:
        self.calls += 1
        self.folders.append(folder)
        time.sleep(0.05)
        if self.error is not None:
            raise self.error
        executable = folder / manifest.top
        executable.write_bytes(manifest.verilog[0].read_bytes())
        return executable


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Compiler:
    compiler = Compiler()
    monkeypatch.setattr(module, "_compile", compiler)
    return compiler


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CIRCULANT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "verilator"


@pytest.fixture
def design(tmp_path: Path) -> Manifest:
    return Manifest.load(write(tmp_path / "design"))


def change(design: Manifest, text: str) -> None:
    design.verilog[0].write_text(text)


def entries(store: Path) -> list[Path]:
    return [path for path in store.iterdir() if path.is_dir()]


def test_a_second_build_comes_from_the_cache(compiler: Compiler, store: Path, design: Manifest) -> None:
    first, second = build(design, TOOLCHAIN), build(design, TOOLCHAIN)
    assert (first.cached, second.cached, compiler.calls) == (False, True, 1)
    assert first.folder == second.folder
    assert (first.folder / design.top).read_bytes() == module.cache.sealed(design.verilog[0].read_bytes())


def test_images_are_no_part_of_the_key_and_the_rest_is(compiler: Compiler, store: Path, design: Manifest) -> None:
    first = build(design, TOOLCHAIN)
    write_image(design.images[0], 1, 2, 3)
    assert build(design, TOOLCHAIN).folder == first.folder
    other_tools = build(design, Toolchain("Verilator 5", None, Path("libraries"), "another"))
    change(design, "// changed\n")
    assert len({first.folder, other_tools.folder, build(design, TOOLCHAIN).folder}) == 3


def test_builds_at_the_same_time_compile_once(compiler: Compiler, store: Path, design: Manifest) -> None:
    threads = [threading.Thread(target=build, args=(design, TOOLCHAIN)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert compiler.calls == 1
    assert len(entries(store)) == 1


@pytest.mark.parametrize("error", [Refusal("no"), KeyboardInterrupt()])
def test_a_build_that_ends_early_leaves_nothing(compiler: Compiler, store: Path, design: Manifest,
                                                error: BaseException) -> None:
    compiler.error = error
    with pytest.raises(type(error)):
        build(design, TOOLCHAIN)
    assert entries(store) == []
    compiler.error = None
    assert not build(design, TOOLCHAIN).cached


def test_the_entries_used_last_are_kept(compiler: Compiler, store: Path, design: Manifest,
                                        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 3)
    folders = []
    for i in range(4):
        change(design, f"// {i}\n")
        folders.append(build(design, TOOLCHAIN).folder)
        os.utime(folders[-1], (1000 + i, 1000 + i))
        if i == 2:
            change(design, "// 0\n")
            assert build(design, TOOLCHAIN).cached, "a hit has to count as use"
    assert [folder.exists() for folder in folders] == [True, False, True, True]


def test_an_entry_in_use_is_kept(compiler: Compiler, store: Path, design: Manifest,
                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 1)
    used = build(design, TOOLCHAIN)
    os.utime(used.folder, (1000, 1000))
    change(design, "// 1\n")
    build(design, TOOLCHAIN)
    assert used.folder.exists() and len(entries(store)) == 2
    folder = used.folder
    del used
    change(design, "// 2\n")
    last = build(design, TOOLCHAIN).folder
    assert not folder.exists() and entries(store) == [last], "nobody has it any more"


def test_what_a_killed_build_left_is_removed_after_a_day(compiler: Compiler, store: Path, design: Manifest) -> None:
    old, new = store / ".building-old", store / ".building-new"
    old.mkdir(parents=True)
    new.mkdir()
    os.utime(old, (0, 0))
    build(design, TOOLCHAIN)
    assert (old.exists(), new.exists()) == (False, True)


def test_what_a_killed_build_left_is_removed_at_once(compiler: Compiler, store: Path, design: Manifest) -> None:
    """In the next process: each sweeps a folder once."""
    dead = subprocess.Popen([sys.executable, "-c", "pass"])
    dead.wait()
    own = temporaries.prefix("x")
    left = store / f"{own.replace(f'-{os.getpid()}.', f'-{dead.pid}.')}abcdefgh"
    mine, foreign = store / f"{own}abcdefgh", store / f".x.00000000-{dead.pid}.abcdefgh"
    for path in (left, mine, foreign):
        path.mkdir(parents=True)
        (path / "half").touch()
    build(design, TOOLCHAIN)
    assert [path.exists() for path in (left, mine, foreign)] == [False, True, True]


@pytest.mark.parametrize("damage", [
    lambda path: path.write_bytes(b""), lambda path: path.write_bytes(path.read_bytes()[:-7]),
    lambda path: path.write_bytes(b"x" + path.read_bytes()[1:]), lambda path: path.chmod(0o644),
    lambda path: path.unlink(), lambda path: (path.unlink(), path.mkdir()),
    lambda path: (shutil.rmtree(path.parent), path.parent.touch()),
], ids=["empty", "cut", "changed", "not executable", "missing", "folder", "file for a folder"])
def test_a_damaged_simulator_is_compiled_again(compiler: Compiler, store: Path, design: Manifest,
                                               damage: Callable[[Path], object]) -> None:
    """Even root is told that a file is not executable."""
    executable = build(design, TOOLCHAIN).folder / design.top
    whole = executable.read_bytes()
    damage(executable)
    assert not build(design, TOOLCHAIN).cached
    assert executable.read_bytes() == whole
    assert os.access(executable, os.X_OK)
    assert build(design, TOOLCHAIN).cached
    assert compiler.calls == 2


def test_a_cache_that_does_not_keep_a_simulator_is_named(compiler: Compiler, store: Path, design: Manifest,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.cache, "sealed", lambda data: b"")
    with pytest.raises(Refusal, match=r"^The cache must keep what is written to it, but \S+accumulator is empty right "
                                      r"after it was compiled; name another folder in CIRCULANT_CACHE$"):
        build(design, TOOLCHAIN)
    assert compiler.calls == 1


def test_a_temporary_folder_with_a_space_is_passed_over(compiler: Compiler, store: Path, design: Manifest,
                                                        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a b").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "a b"))
    build(design, TOOLCHAIN)
    assert compiler.folders[0].parent == store
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(Refusal, match=r"^make needs a temporary folder in a path without spaces, but '\S+/a b' and"):
        module._place(store)


def test_a_cache_that_cannot_be_written_is_refused(design: Manifest, tmp_path: Path,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CIRCULANT_CACHE", str(tmp_path / "file"))
    with pytest.raises(Refusal, match="must be writable, but it is not; name another one in CIRCULANT_CACHE"):
        build(design, TOOLCHAIN)


def test_objects_of_the_library_are_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "include").mkdir()
    script = "from pathlib import Path; Path('count').open('a').write('x'); Path('out.o').write_text('object')"
    for source, calls in (("include/verilated_vpi.cpp", 1), ("include/verilated_vpi.cpp", 1), ("include/other.cpp", 2),
                          ("verilated_vpi.cpp", 3)):
        (tmp_path / "out.o").unlink(missing_ok=True)
        assert objcache.main(["python3", "-c", script, "-o", "out.o", source], tmp_path / "store") == 0
        assert (tmp_path / "out.o").read_text() == "object"
        assert (tmp_path / "count").stat().st_size == calls, source


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:-1], lambda data: b"x" + data[1:]])
def test_an_object_that_is_damaged_is_compiled_again(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    command = ["python3", "-c", f"open({str(tmp_path / 'out.o')!r}, 'w').write('object')", "-o",
               str(tmp_path / "out.o"), "include/verilated.cpp"]
    store = tmp_path / "store"
    for _ in range(3):
        assert objcache.main(command, store) == 0
        assert (tmp_path / "out.o").read_bytes() == b"object"
        kept, = store.iterdir()
        assert kept.read_bytes() == module.cache.sealed(b"object")
        kept.write_bytes(damage(kept.read_bytes()))
        (tmp_path / "out.o").unlink()


def test_an_object_that_does_not_compile_is_not_kept(tmp_path: Path) -> None:
    command = ["python3", "-c", "raise SystemExit(3)", "-o", str(tmp_path / "out.o"), "include/verilated.cpp"]
    assert objcache.main(command, tmp_path / "store") == 3
    assert not (tmp_path / "store").exists()


def test_what_belongs_to_a_design_is_one_object_and_macros_of_the_last_file_reach_no_other(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first, second, last = texts = {"first.cpp": "int value = 1;\n", "second.cpp": "int other = 2;\n",
                                   "last.cpp": "#define value wrong\n#define other wrong\nint third = 3;\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("CIRCULANT_JOINED", f"{first}:{second}:{last}")
    for name, defined in ((first, ["other", "third", "value"]), (second, [])):
        assert objcache.main(["g++", "-c", "-o", "out.o", name], tmp_path / "store") == 0
        names = subprocess.run(["nm", "out.o"], capture_output=True, text=True, check=True).stdout.split()
        assert sorted(names[2::3]) == defined, name
    assert objcache.joined(["g++", "another.cpp"], tmp_path) == ["g++", "another.cpp"]


def test_a_design_that_verilator_split_is_compiled_beside_what_drives_it(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CIRCULANT_JOINED", f"{objcache.WHOLE}:main.cpp:design.cpp")
    objcache.LISTED.write_text("VM_PARALLEL_BUILDS = 0\n")
    assert objcache.joined(["false", objcache.WHOLE], tmp_path) == [
        "false", "-include", objcache.WHOLE, "-include", "main.cpp", "design.cpp"], "no headers can be precompiled"
    objcache.LISTED.write_text("VM_PARALLEL_BUILDS = 1\n")
    assert objcache.joined(["g++", "main.cpp"], tmp_path) == ["g++", "-include", "main.cpp", "design.cpp"]
    assert objcache.joined(["g++", "design.cpp"], tmp_path)[-1] == "/dev/null"


def test_the_program_is_compiled_again_where_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    script = "open('count', 'a').write('x'); open('out.o', 'w').write('object')"
    for folder, changed, calls in (("a", "", 1), ("b", "", 1), ("b", "drive.cpp", 2), ("b", "stalls.h", 3)):
        (tmp_path / folder).mkdir(exist_ok=True)
        for name in objcache.PROGRAM:
            (tmp_path / folder / name).write_text("changed" if name == changed else "")
        command = ["python3", "-c", script, "-o", "out.o", str(tmp_path / folder / "drive.cpp")]
        assert objcache.main(command, tmp_path / "store") == 0
        assert (tmp_path / "count").stat().st_size == calls, (folder, changed)


def test_headers_are_precompiled_once_for_all_designs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """-H marks headers that were taken in their precompiled form with an exclamation mark."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(objcache, "HEADERS", "#include <cstdint>\n")
    monkeypatch.setenv("CIRCULANT_JOINED", objcache.WHOLE)
    objcache.LISTED.touch()
    Path(objcache.WHOLE).write_text("#include <cstdint>\nint64_t value;\n")
    store, old = tmp_path / "store" / "tools", tmp_path / "store" / "former" / "x.h.gch"
    old.parent.mkdir(parents=True)
    old.touch()
    os.utime(old, (0, 0))
    flags, calls = ["g++", "-O0", "-Winvalid-pch", "-Werror"], []
    call = subprocess.call
    monkeypatch.setattr(subprocess, "call", lambda command: calls.append(command) or call(command))
    for times, damage in ((1, lambda data: data), (1, lambda data: data[:-7]), (2, lambda data: b"x" + data[1:]),
                          (3, lambda data: data)):
        command = objcache.joined([*flags, "-c", "-o", "Vtop__ALL.o", objcache.WHOLE], store)
        said = subprocess.run([*command, "-H"], capture_output=True, text=True, check=True).stderr
        kept, = store.glob("*.gch")
        assert said.startswith(f"! {kept}\n") and len(calls) == times
        assert sorted(store.iterdir()) == [kept.with_suffix(""), kept] and not old.exists()
        kept.write_bytes(damage(kept.read_bytes()))
    assert len({str(objcache.precompiled(each, store)) for each in (flags, [*flags, "-DX"])}) == 2
