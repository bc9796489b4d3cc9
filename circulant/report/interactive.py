"""Pages of pictures that answer to a pointer: hover for figures, click for the experiment behind a point, PNG and SVG.

A page is one file that needs no network: plotly.js, whose Python package ships it as one file, is written into it. That
is 4.8 MB of each page, which a file on a disk can be; the smaller builds lack parallel coordinates.
"""
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from circulant.extras import extras
from circulant.report.page import render

__all__ = ["PALETTE", "SCALE", "Choice", "Page", "Picture", "Trace", "interactive"]

PALETTE = ("#4c78a8", "#d08a2e", "#3f9464", "#9067ab", "#c0594a", "#5a9fa6", "#8a8556", "#b5739a")
"""Colours that can be told from a light and from a dark card, and from each other by most people who see fewer."""

SCALE = ((0, "#4c78a8"), (0.5, "#3f9464"), (1, "#dba53a"))
"""From the least to the greatest, with contrast to both cards at each end."""


Trace = dict[str, Any]
"""A trace, an axis or a marker as plotly.js takes it."""


@dataclass(frozen=True)
class Choice:
    """One of several views of a picture.

    Parameters:
        traces, layout: as plotly.js takes them. The colours "ink" and "soft" are those of the page's text, by its
            theme.
    """

    label: str
    traces: Sequence[Mapping[str, Any]]
    layout: Mapping[str, Any]


@dataclass(frozen=True)
class Picture:
    """A picture with its words.

    Parameters:
        name: names the files that are saved.
        choices: the views of which one is shown; where there are several, a list to choose from stands above it.
        note: sentences below it.
        height: in pixels.
        wide: whether it scrolls sideways where it would become too narrow.
    """

    name: str
    title: str
    choices: Sequence[Choice]
    note: str = ""
    height: int = 420
    wide: bool = False


@dataclass(frozen=True)
class Page:
    """All that a page shows.

    Parameters:
        said: paragraphs behind the title; the first one is set off.
        tables: (title, headings, rows) behind the pictures.
        experiments: the text of the experiment file of each point by its key, which a trace has as ``customdata``.
    """

    title: str
    sub: str
    said: Sequence[str]
    pictures: Sequence[Picture]
    tables: Sequence[tuple[str, Sequence[str], Sequence[Sequence[str]]]] = ()
    experiments: Mapping[str, str] = field(default_factory=dict)


def interactive(page: Page) -> str:
    """The page as HTML.

    Raises:
        MissingExtra: where plotly is not installed.
    """
    data = {"pictures": {each.name: {"choices": [{"traces": choice.traces, "layout": choice.layout}
                                                 for choice in each.choices]} for each in page.pictures},
            "experiments": page.experiments}
    # "</" would end the script that holds it, "<!--" would hide its end; JSON has another word for the same.
    text = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", r"\u003c")
    return render("explore.html", page=page, data=text, plotly=_library())


@cache
def _library() -> str:
    with extras("an interactive page", "plotly"):
        return resources.files("plotly").joinpath("package_data", "plotly.min.js").read_text("utf-8")
