"""Verilog from RTLIL, by the Yosys that Amaranth brings or finds.

The Verilog means the same to simulators of two states and of four. It has no ``always @*``, which SystemVerilog never
runs where it only reads constants. It gives no register and no memory an initial value: what a circuit needs to start,
its reset sets, so a simulator that knows X, or one that starts at random, finds out what is missing.
"""
import re
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from amaranth._toolchain import ToolNotFound, require_tool
from amaranth._toolchain.yosys import YosysError, find_yosys

from circulant.hw.emit.verilog_compaction import compacted
from circulant.sim import child
from circulant.sim.refusal import Refusal, ToolError

__all__ = ["Yosys"]

LONG = """\
read_rtlil <<rtlil
{rtlil}
rtlil
proc -norom
delete t:$meminit_v2
memory_collect
attrmap -remove generator -remove top -remove src -remove init
attrmap -remove amaranth.hierarchy -remove amaranth.decoding
attrmap -modattr -remove generator -remove top -remove src -remove amaranth.hierarchy -remove amaranth.decoding
write_verilog -norename -noparallelcase
delete *
"""
"""The passes of amaranth.back.verilog.convert, but for the processes and the initial values."""

SHORT = """\
read_rtlil <<rtlil
{rtlil}
rtlil
select -set thin t:circulant_rom t:circulant_ram %u %m
select -set thick * @thin %d
attrmap -modattr -rename generator keep_hierarchy @thick
flatten
delete @thin
proc -norom
opt_expr
opt_merge
opt_clean -purge
delete t:$meminit_v2
memory_collect
attrmap -remove generator -remove top -remove src -remove init
attrmap -remove unused_bits -remove full_case -remove parallel_case -remove amaranth.hierarchy -remove amaranth.decoding
attrmap -modattr -remove keep_hierarchy
attrmap -modattr -remove generator -remove top -remove src -remove amaranth.hierarchy
write_verilog -norename -noparallelcase
delete *
"""

SECONDS = 3600.0
"""For which Yosys may be at work on a text; the largest designs take it half a minute."""

_FUNCTION = re.compile(r"\\\$procmux\$(\d+)(?= )")
"""A function that chooses among many values, as Yosys names it: to Icarus a name with $ is one of its own functions."""


class Yosys:
    """A run of Yosys, a context. It works beside: on each text from when it is given, while the next one is made.

    Parameters:
        short: without what nobody reads, and in fewer lines, see `circulant.hw.emit.verilog_compaction`.

    Raises:
        Refusal: when there is no Yosys of at least 0.40.
    """

    def __init__(self, *, short: bool = False) -> None:
        self._short = short
        try:
            found = find_yosys(lambda version: version >= (0, 40))
            package = getattr(found, "YOSYS_PACKAGE", None)
            command = [sys.executable, "-m", package] if package else [require_tool(found.YOSYS_BINARY)]
        except (ToolNotFound, YosysError) as error:
            raise Refusal(f"Yosys must be 0.40 or newer to write Verilog, but there is none ({error}); install it: "
                          "pip install 'amaranth[builtin-yosys]'") from None
        self._process = subprocess.Popen([*command, "-q", "-"], encoding="utf-8", stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._writer, self._readers = ThreadPoolExecutor(1), ThreadPoolExecutor(2)
        self._given: list[Future[None]] = []
        self._verilog, self._words = (self._readers.submit(each.read)
                                      for each in (self._process.stdout, self._process.stderr))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self._process.kill()
        for each in (self._writer, self._readers):
            each.shutdown()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe
            with suppress(BrokenPipeError):
                pipe.close()

    def give(self, rtlil: str) -> None:
        """Modules in RTLIL that are to be written. They may have instances of modules in other texts."""
        # One that says it is the top would have all that it does not hold dropped.
        rtlil = rtlil.replace("attribute \\top 1\n", "")
        self._given.append(self._writer.submit(self._write, (SHORT if self._short else LONG).format(rtlil=rtlil)))

    def _write(self, text: str) -> None:
        assert self._process.stdin
        with suppress(BrokenPipeError):  # It says why it ended.
            self._process.stdin.write(text)
            self._process.stdin.flush()

    def read(self) -> None:
        """Wait until Yosys has read all that was given.

        Raises:
            ToolError: when it stands still.
        """
        for each in self._given:
            self._wait(each)

    def _wait(self, awaited: Future[Any]) -> Any:
        try:
            return awaited.result(SECONDS)
        except TimeoutError:
            raise child.overdue("Yosys", "writing the Verilog", SECONDS) from None

    def verilog(self) -> str:
        """The Verilog of all that was given; once.

        Raises:
            ToolError: with Yosys's own words, when it fails, or when it stands still.
        """
        assert self._process.stdin
        self.read()
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        banner, _, written = self._wait(self._verilog).partition("\n\n")
        written = f"{banner}\n\n" + written.replace(f"{banner}\n\n", "")
        if self._process.wait():
            raise ToolError(f"Yosys must write the Verilog, but it failed ({_last(self._words.result().strip())}); try "
                            "another version of it, and report the fault")
        written = _FUNCTION.sub(r"choice$\1", written)
        return compacted(written) if self._short else written


def _last(words: str) -> str:
    """The last words of Yosys, in one line."""
    return " ".join(words.split("\n")[-5:]).strip() or "it said nothing"
