"""Verilog from RTLIL, by the Yosys that Amaranth brings or finds."""
import subprocess
import sys
from types import TracebackType
from typing import Self

from amaranth._toolchain import require_tool
from amaranth._toolchain.yosys import YosysError, find_yosys

from circulant.hw.tidy import tidied

__all__ = ["Yosys"]

LONG = """\
read_rtlil <<rtlil
{rtlil}
rtlil
proc -nomux -norom
memory_collect
attrmap -remove generator -remove top -remove src -remove amaranth.hierarchy -remove amaranth.decoding
attrmap -modattr -remove generator -remove top -remove src -remove amaranth.hierarchy -remove amaranth.decoding
write_verilog -norename
"""
"""What amaranth.back.verilog.convert does."""

SHORT = """\
read_rtlil <<rtlil
{rtlil}
rtlil
select -set thin t:circulant_rom t:circulant_ram %m
select -set thick * @thin %d
attrmap -modattr -rename generator keep_hierarchy @thick
flatten
delete @thin
proc -norom
opt_expr
opt_merge
opt_clean -purge
memory_collect
attrmap -remove generator -remove top -remove src -remove unused_bits -remove full_case -remove parallel_case
attrmap -remove amaranth.hierarchy -remove amaranth.decoding
attrmap -modattr -remove keep_hierarchy
attrmap -modattr -remove generator -remove top -remove src -remove amaranth.hierarchy
write_verilog -norename -noparallelcase
"""


class Yosys:
    """A run of Yosys, a context; it starts at once, half a second before it can read, and waits for its text.

    Raises:
        amaranth._toolchain.ToolNotFound: when there is no Yosys of at least 0.40.
    """

    def __init__(self) -> None:
        found = find_yosys(lambda version: version >= (0, 40))
        package = getattr(found, "YOSYS_PACKAGE", None)
        command = [sys.executable, "-m", package] if package else [require_tool(found.YOSYS_BINARY)]
        self._process = subprocess.Popen([*command, "-q", "-"], encoding="utf-8", stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()

    def verilog(self, rtlil: str, *, short: bool = False) -> str:
        """The Verilog of modules in RTLIL; once. Beside a top there must be no module that it does not hold.

        Parameters:
            short: without what nobody reads, and in fewer lines, see `circulant.hw.tidy`.

        Raises:
            YosysError: with Yosys's own words, when it fails.
        """
        written, words = self._process.communicate((SHORT if short else LONG).format(rtlil=rtlil))
        if self._process.returncode:
            raise YosysError(words.strip())
        return tidied(written) if short else written
