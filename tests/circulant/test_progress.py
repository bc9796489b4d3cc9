import io
import time

from rich.console import Console

from circulant import progress
from circulant.progress import Bars, silent


def text(terminal, *reports, crash=False):
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=120)
    try:
        with Bars(console) as bars:
            for report in reports:
                bars(*report)
            if crash:
                raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    return out.getvalue()


def test_elsewhere_than_on_a_terminal_there_is_one_line_for_each_task():
    said = text(False, ("dense", 1, 3, "loss 2"), ("dense", 3, 3, "loss 1"), ("ADMM", 2, 5), ("retraining", 1, 1))
    assert said.splitlines() == ["dense: 3 of 3, loss 1", "ADMM: 2 of 5", "retraining: 1 of 1"]


def test_a_task_of_unknown_length_is_silent():
    assert text(False, ("Verilog", 0, 0)) == ""


def test_an_interrupted_task_shows_how_far_it_came():
    assert text(False, ("dense", 1, 3), crash=True).splitlines() == ["dense: 1 of 3"]


def test_a_log_file_has_a_line_now_and_then_of_a_task_that_lasts(monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.02)
    out = io.StringIO()
    with Bars(Console(file=out, force_terminal=False, width=120)) as bars:
        for report, line in ((("placement", 0, 0), "placement; 0 min"), (("routing", 2, 5, "arcs"),
                                                                         "routing: 2 of 5, arcs; 0 min")):
            bars(*report)
            until = time.monotonic() + 10
            while line not in out.getvalue().splitlines() and time.monotonic() < until:
                time.sleep(0.01)
            assert line in out.getvalue().splitlines()
    ended = out.getvalue()
    time.sleep(0.1)
    assert out.getvalue() == ended


def test_a_terminal_sees_bars():
    said = text(True, ("dense", 1, 3, "loss 2"), ("dense", 3, 3, "loss 1"), ("ADMM", 1, 5))
    assert "dense" in said
    assert "3/3" in said
    assert "━" in said


def test_silent_says_nothing(capsys):
    silent("dense", 1, 3)
    assert capsys.readouterr() == ("", "")
