import ctypes
import os
import time

import pytest

from circulant.hw.c import Emulator, compiler
from circulant.sim.refusal import Refusal, ToolError
from tests.hw.golden import network

ANSWER = {"answer.h": "int answer(void);\n", "answer.c": '#include "answer.h"\nint answer(void) { return 42; }\n'}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CIRCULANT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "c"


def test_a_library_is_compiled_once(cache):
    made = compiler.library(ANSWER, "answer.c")
    assert made.parent == cache
    assert ctypes.CDLL(str(made)).answer() == 42
    before = made.stat().st_ino
    assert compiler.library(ANSWER, "answer.c") == made
    assert made.stat().st_ino == before
    assert [path.name for path in cache.iterdir()] == [made.name]


def test_another_source_is_another_library(cache):
    changed = ANSWER | {"answer.h": "/* changed */\nint answer(void);\n"}
    assert compiler.library(ANSWER, "answer.c") != compiler.library(changed, "answer.c")


def test_what_was_not_used_for_long_is_removed(cache, monkeypatch):
    monkeypatch.setattr(compiler, "KEPT", 2)
    cache.mkdir(parents=True)
    for age in (3, 2, 1):
        (cache / f"{age}.so").touch()
        os.utime(cache / f"{age}.so", (time.time() - 1000 * age,) * 2)
    made = compiler.library(ANSWER, "answer.c")
    assert sorted(path.name for path in cache.iterdir()) == sorted(["1.so", made.name])


@pytest.mark.parametrize("damage", [
    lambda path: path.write_bytes(b""), lambda path: path.write_bytes(path.read_bytes()[:-100]),
    lambda path: path.write_bytes(path.read_bytes()[:-40] + bytes(40)), lambda path: (path.unlink(), path.mkdir()),
    lambda path: (path.unlink(), os.mkfifo(path))], ids=["empty", "cut", "changed", "folder", "pipe"])
def test_a_library_that_is_damaged_is_compiled_again(cache, damage):
    cache.mkdir(parents=True)
    made = compiler.library(ANSWER, "answer.c")
    damage(made)
    assert compiler.library(ANSWER, "answer.c") == made
    assert ctypes.CDLL(str(made)).answer() == 42
    assert [path.name for path in cache.iterdir()] == [made.name]


def test_a_cache_that_does_not_keep_what_is_written_is_named(cache, monkeypatch):
    monkeypatch.setattr(compiler, "atomic_bytes", lambda path, data: path.write_bytes(data[:-1]))
    with pytest.raises(Refusal, match=r"^The cache must keep what is written to it, but \S+\.so is cut or changed "
                                      r"right after it was compiled; name another folder in CIRCULANT_CACHE$"):
        compiler.library(ANSWER, "answer.c")


def test_refuses_without_a_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Refusal, match=r"^The emulator needs a C compiler, but PATH has none of gcc, clang, cc; install "
                                      r"one \(on Debian: apt-get install gcc libc6-dev\)$"):
        Emulator(network(2, 4, 4))


def test_refuses_what_does_not_compile():
    with pytest.raises(ToolError, match=r"^The emulator's C must compile with \S+, but it does not \(.*error: .*\); "
                                        r"try another compiler$"):
        compiler.library({"a.c": "int f(void) { return 1 }\n"}, "a.c")


def test_refuses_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("CIRCULANT_CACHE", str(tmp_path / "file"))
    with pytest.raises(Refusal, match=r"^The cache folder \S+ must be writable, but it is not; name another one in "
                                      r"CIRCULANT_CACHE$"):
        compiler.library(ANSWER, "answer.c")
