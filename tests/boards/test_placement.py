import re

import pytest

from circulant.boards.device import devices
from circulant.boards.placement import DEVICES, Critical, critical, frequency, place, utilization, wrapper
from circulant.sim.refusal import Refusal, ToolError

LOG = """\
Info: Device utilisation:
Info: \t          TRELLIS_IO:    11/  365     3%
Info: \t         MULT18X18D:   154/  156    98%
Info: \t                 GSR:     0/    1     0%
Info: Max frequency for clock '$glbnet$clk': 130.5 MHz (PASS at 100.00 MHz)
Info: Max frequency for clock '$glbnet$clk': 104.25 MHz (PASS at 100.00 MHz)
"""


def test_every_device_is_known():
    assert DEVICES.keys() <= devices().keys()


def test_the_log_says_what_is_used_and_last_what_the_routed_clock_reaches():
    assert frequency(LOG) == 104.25
    assert utilization(LOG) == {"TRELLIS_IO": (11, 365), "MULT18X18D": (154, 156)}
    with pytest.raises(ToolError, match="nextpnr must say what the clock reaches"):
        frequency("Info: no clock")


def way(*steps, start="posedge clk", end="posedge clk"):
    """Of (kind, nanoseconds) from cell to cell."""
    return {"from": start, "to": end, "path": [
        {"type": kind, "delay": delay, "from": {"cell": f"cell_{n}"}, "to": {"cell": f"cell_{n + 1}"}}
        for n, (kind, delay) in enumerate(steps)]}


def test_the_slowest_way_between_two_registers_limits_the_clock():
    slow = way(("clk-to-q", 0.5), ("routing", 1.25), ("logic", 0.25), ("routing", 3.0), ("setup", 0.0))
    fast, port = way(("clk-to-q", 0.5), ("routing", 2.0)), way(("routing", 9.0), start="<async>")
    assert critical({"critical_paths": [fast, slow, port]}) == Critical(0.75, 4.25, "cell_0", "cell_5")
    with pytest.raises(ToolError, match="must hold a path between two registers"):
        critical({"critical_paths": [port]})


def test_the_wrapper_shifts_words_of_the_designs_ports():
    port = {"elements_per_beat": 4, "container_bits": 16}
    text = wrapper({"top": "top", "clock": "clk", "reset": "rst", "input": port | {"prefix": "s_axis"},
                    "output": port | {"prefix": "m_axis", "elements_per_beat": 2}})
    assert "reg [63:0] given" in text and "reg [31:0] taken" in text
    assert re.search(r"top design\(\s*\.clk\(clk\), \.rst\(reset\),\s*\.s_axis_tdata\(given\)", text)


def test_unknown_device_is_refused(tmp_path):
    with pytest.raises(Refusal, match=r"^A device to place on must be one of .*, not 'LFE5U-84F'; did you mean"):
        place(tmp_path, "LFE5U-84F")
