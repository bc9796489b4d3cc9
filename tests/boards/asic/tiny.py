"""A library of few cells, written as a liberty file: what the tests map to, where no foundry's is at hand."""
import numpy as np

from circulant.boards.asic.cells.library import Library
from circulant.hw import generate
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real.float_model import Model

GATES = {"INV_1": (1, "!A", 1.0, 40), "INV_4": (2, "!A", 3.5, 160), "BUF_2": (2, "A", 1.0, 80),
         "BUF_8": (4, "A", 2.0, 320), "NAND2_1": (2, "!(A&B)", 1.0, 40), "NOR2_1": (2, "!(A|B)", 1.0, 40),
         "XOR2_1": (4, "(A^B)", 2.0, 40)}
"""Area in µm², function, capacitance of a pin and the most that the output drives, both in fF."""

TABLE = 'index_1 ("0.01, 0.1"); index_2 ("0.001, 0.1"); values ("{0}, {1}", "{0}, {1}");'


def _arc(related: str, kind: str = "") -> str:
    sides = " ".join(f"{side} (t) {{ {TABLE.format(0.05, 0.4)} }}" for side in ("cell_rise", "cell_fall",
                                                                                "rise_transition", "fall_transition"))
    return f'timing () {{ related_pin : "{related}"; {kind} {sides} }}'


def _power(pj: float) -> str:
    return "\n".join(["      internal_power () {", *(
        f'        {side}_power (p) {{ index_1 ("0.01, 0.1"); values ("{pj}, {pj}"); }}' for side in ("rise", "fall")),
        "      }"])


def _input(name: str, femto: float, more: str = "") -> str:
    return f"    pin ({name}) {{ direction : input; capacitance : {femto / 1000}; {more} }}"


def _setup() -> str:
    return " ".join(f'timing () {{ related_pin : "CK"; timing_type : {kind}_rising; rise_constraint (scalar) '
                    f'{{ values ("{ns}"); }} fall_constraint (scalar) {{ values ("{ns}"); }} }}'
                    for kind, ns in (("setup", 0.02), ("hold", -0.02)))


def liberty(*, flip_flops: bool = True, clock_gates: bool = True) -> str:
    """The text of the file."""
    cells = []
    for name, (area, function, femto, most) in GATES.items():
        pins = [pin for pin in "AB" if pin in function]
        sense = f"timing_sense : {'non' if '^' in function else 'negative' if '!' in function else 'positive'}_unate;"
        cells.append("\n".join([
            f"  cell ({name}) {{", f"    area : {area}; cell_leakage_power : 2;", *(_input(pin, femto) for pin in pins),
            f'    pin (Y) {{ direction : output; function : "{function}"; max_capacitance : {most / 1000};',
            *(f"      {_arc(pin, sense)}" for pin in pins), _power(0.002), "    }", "  }"]))
    cells += [f'  cell ({name}) {{ area : 1; pin (Y) {{ direction : output; function : "{value}"; }} }}'
              for name, value in (("HIGH", 1), ("LOW", 0))]
    for name, area in (("DFF_1", 5), ("SDFF_1", 7)) if flip_flops else ():
        scan = name == "SDFF_1"
        cells.append("\n".join([
            f"  cell ({name}) {{", f"    area : {area}; cell_leakage_power : 4;",
            f'    ff (IQ, IQN) {{ clocked_on : "CK"; next_state : "{"(D&!SE) | (SI&SE)" if scan else "D"}"; }}',
            "    pin (CK) {", "      direction : input; clock : true; capacitance : 0.001;", _power(0.01), "    }",
            _input("D", 1.0, _setup()), *([_input("SE", 1.0, _setup()), _input("SI", 1.0, _setup())] if scan else []),
            *(["    test_cell () { ff (IQ, IQN) { clocked_on : CK; next_state : D; } pin (SI) { direction : input; "
               "signal_type : test_scan_in; } pin (SE) { direction : input; signal_type : test_scan_enable; } }"]
              if scan else []),
            *(line for pin, shown in (("Q", "IQ"), ("QN", "IQN")) for line in (
                f'    pin ({pin}) {{ direction : output; function : "{shown}"; max_capacitance : 0.08;',
                f"      {_arc('CK', 'timing_type : rising_edge;')}", _power(0.003), "    }")), "  }"]))
    if clock_gates:
        cells.append("\n".join([
            "  cell (GATE_1) {", '    area : 4; clock_gating_integrated_cell : "latch_posedge_precontrol";',
            '    statetable ("CK E", "M") { table : "L L : - : L, L H : - : H, H - : - : N"; }',
            "    pin (M) { direction : internal; internal_node : M; }",
            _input("CK", 2.0, "clock : true; clock_gate_clock_pin : true;"),
            _input("E", 1.0, f"clock_gate_enable_pin : true; {_setup()}"),
            _input("T", 1.0, f"clock_gate_test_pin : true; {_setup()}"),
            '    pin (GCK) { direction : output; clock_gate_out_pin : true; state_function : "(CK*M)";',
            f"      {_arc('CK', 'timing_sense : positive_unate;')}", "    }", "  }"]))
    return "\n".join(["library (tiny) {", "  delay_model : table_lookup; time_unit : 1ns; voltage_unit : 1V;",
                      "  capacitive_load_unit (1, pf); leakage_power_unit : 1nW; current_unit : 1mA;",
                      "  pulling_resistance_unit : 1kohm; nom_voltage : 1.0; slew_lower_threshold_pct_rise : 20;",
                      "  slew_upper_threshold_pct_rise : 80; slew_lower_threshold_pct_fall : 20;",
                      "  slew_upper_threshold_pct_fall : 80; input_threshold_pct_rise : 50;",
                      "  input_threshold_pct_fall : 50;",
                      "  output_threshold_pct_rise : 50; output_threshold_pct_fall : 50;",
                      '  lu_table_template (t) { variable_1 : input_net_transition; variable_2 : '
                      'total_output_net_capacitance; index_1 ("0.01, 0.1"); index_2 ("0.001, 0.1"); }',
                      '  power_lut_template (p) { variable_1 : input_transition_time; index_1 ("0.01, 0.1"); }',
                      *cells, "}", ""])


def read(folder, **options) -> Library:
    """The library, from a file in a folder."""
    file = folder / "tiny.lib"
    file.write_text(liberty(**options))
    return Library.read([file])


def network():
    """A fully connected layer of 6 inputs and 4 outputs, with blocks of 2."""
    rng = np.random.default_rng(0)
    layer = FloatLinear("linear", 6, 4, rng.normal(0, 0.4, (2, 3, 2)), rng.normal(0, 0.1, 4))
    model = Model.chain("tiny", 6, False, (layer,))
    return quantize(model, rng.normal(0, 0.5, (8, 6)), weight_bits=6, activation_bits=8)


def design(folder):
    """Its design in a folder, and vectors."""
    made = network()
    vectors = made.vectors(np.random.default_rng(1).normal(0, 0.5, (6, 6)))
    return generate(made, multipliers=2, levels=6, objective="throughput").write(folder / "design"), vectors
