"""hw/emit/verilog.py: what is written means what Amaranth means, in every width and sign."""
import random
import re
import shutil
import subprocess

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.emit.target import VerilogTarget
from tests.hw.simulate import trace

INPUTS = {"a": unsigned(1), "b": unsigned(5), "c": signed(5), "d": signed(8), "e": unsigned(8), "f": signed(3)}
yosys = pytest.mark.skipif(shutil.which("yosys") is None, reason="needs Yosys: apt-get install yosys")
icarus = pytest.mark.skipif(shutil.which("iverilog") is None, reason="needs Icarus Verilog: apt-get install iverilog")


class Drawn(wiring.Component):
    """Outputs that are drawn expressions of the inputs, some through registers and choices."""

    def __init__(self, seed, count=12):
        self._rng, self._count = random.Random(seed), count
        self._values = None
        super().__init__({**{name: In(shape) for name, shape in INPUTS.items()},
                          **{f"y{n}": Out(signed(10) if n % 2 else unsigned(10)) for n in range(count)}})

    def _draw(self, depth):
        rng = self._rng
        if depth == 0 or rng.random() < 0.1:
            return rng.choice([*(getattr(self, name) for name in INPUTS), Const(rng.randrange(16)),
                               Const(-rng.randrange(1, 8)), Const(0, 3), Const(7, 3)])
        a, b = self._draw(depth - 1), self._draw(depth - 1)
        return rng.choice([
            *self._more(a, b), lambda: a + b, lambda: a - b, lambda: a & b, lambda: a | b, lambda: a ^ b, lambda: ~a,
            lambda: -a, lambda: a == b, lambda: a != b, lambda: a < b, lambda: a <= b, lambda: a > b, lambda: a >= b,
            lambda: Mux(a.any(), a, b), lambda: Cat(a, b), lambda: a.all(), lambda: a.xor(), lambda: a >> b.as_unsigned(
                )[:3], lambda: (a << b.as_unsigned()[:2])[:12], lambda: a[:max(1, len(a) // 2)], lambda: a.as_signed(),
            lambda: a[len(a) // 2:].as_signed()])()

    def _more(self, a, b):
        """Products, and parts of inputs: behind the end of an expression Amaranth's simulator finds bits that a circuit
        has not."""
        return [lambda: a * b, lambda: self.d.bit_select(b.as_unsigned()[:3], 3),
                lambda: self.f.word_select(b.as_unsigned()[:2], 3)]

    def elaborate(self, platform):
        m = Module()
        for n in range(self._count):
            target, chosen = getattr(self, f"y{n}"), Signal(Shape(10, signed=bool(n % 2)))
            m.d.comb += chosen.eq(self._draw(3))
            with m.Switch(Cat(self.b, self.a)[:self._rng.choice([1, 2, 6])]):
                with m.Case(self._rng.randrange(2)):
                    m.d.comb += chosen.eq(self._draw(3))
                with m.Case(self._rng.randrange(2)):
                    m.d.comb += chosen[2:7].eq(self._draw(2))
            with m.If(self._draw(1).any()):
                m.d.comb += chosen[3:].eq(self._draw(3))
                with m.If(self._draw(1).any()):
                    m.d.comb += chosen[:4].eq(self._draw(2))
            with m.Elif(self._draw(1).any()):
                m.d.comb += chosen.eq(self._draw(2))
            if n % 3:
                m.d.sync += target.eq(Mux(self.a, chosen, target + self._draw(1)))
            else:
                m.d.comb += target.eq(chosen)
        return m


BENCH = """\
module bench;
  reg clk = 0, rst = 1;
  {declared}
  top top(.clk(clk), .rst(rst), {connected});
  reg [{width}:0] words [0:{last}];
  integer n;
  initial begin
    $readmemh("inputs.hex", words);
    #1 clk = 1; #1 clk = 0; rst = 0;
    for (n = 0; n <= {last}; n = n + 1) begin
      {{{inputs}}} = words[n];
      #1 $display("{formats}", {outputs});
      clk = 1; #1 clk = 0;
    end
  end
endmodule
"""


def simulated(text, component, values, folder):
    """Outputs in each cycle, as Icarus finds them; an unknown bit is an x."""
    members = component.signature.members
    width = {name: Shape.cast(member.shape).width for name, member in members.items()}
    ins = [name for name, member in members.items() if member.flow is In]
    outs = [name for name in members if name not in ins]
    words = [sum((value & ((1 << width[name]) - 1)) << sum(width[each] for each in ins[k + 1:])
                 for k, (name, value) in enumerate(zip(ins, row, strict=True)))
             for row in zip(*(values[name] for name in ins), strict=True)]
    (folder / "inputs.hex").write_text("".join(f"{word:x}\n" for word in words))
    (folder / "bench.v").write_text(BENCH.format(
        declared=" ".join(f"{'reg' if name in ins else 'wire'} [{width[name] - 1}:0] {name};" for name in members),
        connected=", ".join(f".{name}({name})" for name in members), width=sum(width[name] for name in ins) - 1,
        last=len(words) - 1, inputs=", ".join(ins), formats=" ".join(["%b"] * len(outs)), outputs=", ".join(outs)))
    (folder / "top.v").write_text(text)
    subprocess.run(["iverilog", "-g2005", "-Wall", "-s", "bench", "-o", "bench.vvp", "bench.v", "top.v"], cwd=folder,
                   check=True, capture_output=True)
    found = subprocess.run(["vvp", "-n", "bench.vvp"], cwd=folder, check=True, capture_output=True, text=True).stdout
    return [line.split() for line in found.splitlines()]


@icarus
@pytest.mark.parametrize("seed", range(12))
def test_drawn_logic_means_what_amaranth_means(seed, tmp_path):
    rng, drawn = random.Random(seed), Drawn(seed)
    values = {name: [rng.randrange(-(1 << shape.width - 1), 1 << shape.width - 1) if shape.signed else
                     rng.randrange(1 << shape.width) for _ in range(60)] for name, shape in INPUTS.items()}
    expected = trace(Drawn(seed), values)
    found = simulated(VerilogTarget().convert(drawn, "top"), drawn, values, tmp_path)
    outputs = [name for name in drawn.signature.members if name.startswith("y")]
    for n, row in enumerate(found):
        assert [f"{expected[name][n] & 1023:010b}" for name in outputs] == row, f"in cycle {n}"


class Proved(Drawn):
    """Logic without registers, small enough for a proof, with parts of any unsigned expression: behind the end of a
    signed one Yosys has zeros, Amaranth's simulator its sign."""

    def _more(self, a, b):
        a, b = a.as_unsigned(), b.as_unsigned()
        return [lambda: a[:4] * b[:4], lambda: a[:3].as_signed() * b[:5].as_signed(),
                lambda: a.bit_select(b[:3], 3), lambda: a.word_select(b[:2], 3)]

    def elaborate(self, platform):
        m = Module()
        for n in range(self._count):
            y = getattr(self, f"y{n}")
            m.d.comb += y.eq(self._draw(3))
            with m.Switch(Cat(self.b, self.a)[:self._rng.choice([1, 2, 6])]):
                with m.Case(self._rng.randrange(2)):
                    m.d.comb += y.eq(self._draw(3))
                with m.Case(self._rng.randrange(2)):
                    m.d.comb += y[2:7].eq(self._draw(2))
            with m.If(self._draw(1).any()):
                m.d.comb += y[3:].eq(self._draw(3))
                with m.If(self._draw(1).any()):
                    m.d.comb += y.bit_select(self._draw(1).as_unsigned()[:3], 4).eq(self._draw(2))
            with m.Elif(self._draw(1).any()):
                m.d.comb += y.eq(self._draw(2))
        return m


PROOF = """\
read_rtlil expected.il
hierarchy -top top; proc; flatten; opt_clean; rename top expected; design -stash expected
read_verilog written.v
hierarchy -top top; proc; flatten; opt_clean; rename top written; design -stash written
design -copy-from expected -as expected expected; design -copy-from written -as written written
miter -equiv -flatten -make_outputs -ignore_gold_x expected written both
sat -verify -prove trigger 0 both
"""


def proof(text, component, folder):
    """A run of Yosys, which fails unless the Verilog gives what Amaranth's own netlist does, for all inputs."""
    (folder / "written.v").write_text(text)
    (folder / "expected.il").write_text(rtlil.convert(component, name="top", emit_src=False))
    return subprocess.run(["yosys", "-q", "-"], input=PROOF, cwd=folder, capture_output=True, text=True, check=False)


@yosys
@pytest.mark.parametrize("seed", range(20))
def test_drawn_logic_is_proved_to_be_that_of_yosys(seed, tmp_path):
    found = proof(VerilogTarget().convert(Proved(seed, 6), "top"), Proved(seed, 6), tmp_path)
    assert found.returncode == 0, found.stderr


@yosys
def test_a_proof_fails_where_an_operator_is_another(tmp_path):
    text = VerilogTarget().convert(Proved(0, 6), "top")
    assert " + " in text
    found = proof(text.replace(" + ", " - "), Proved(0, 6), tmp_path)
    assert "proof did fail" in found.stderr


def test_registers_have_no_initial_value_and_a_process_has_a_clock():
    """So nothing is known before the reset, in any simulator, and no process waits for a change that never comes."""
    text = VerilogTarget().convert(Drawn(3), "top")
    assert re.findall(r"always @.*",
                      text) == ["always @(posedge clk) begin"] * text.count("always @(posedge clk) begin") + [
        "always @(posedge clk) if (en) data <= mem[addr];"]
    assert not re.search(r"\breg\b[^;]*=", text)
    assert re.findall(r"initial .*", text) == ["initial $readmemh(IMAGE, mem);"]
