"""The documentation: pages are reached, links and anchors lead somewhere, programs run, commands parse."""
import importlib.util
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import click
import pytest

from circulant.cli import cli
from circulant.experiment import load
from circulant.sim.design import MANIFEST
from circulant.sim.golden.network_file import NETWORK
from circulant.sim.kinds.registry import KINDS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
MANUAL = [page for page in PAGES if "archive" not in page.parts and page.name not in ("CHANGELOG.md", "results.md")]
EXTRA = ("material", "mkdocstrings", "mkdocs_click")
MISSING = [name for name in EXTRA if importlib.util.find_spec(name) is None]


def name(page):
    return str(page.relative_to(ROOT))


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.S | re.M)


def commands():
    """Every line of a shell block that begins with circulant, with the page that it stands on."""
    for page in MANUAL:
        for block in blocks(page, "sh"):
            for line in block.replace("\\\n", " ").splitlines():
                if line.startswith("circulant "):
                    yield pytest.param(line, id=f"{name(page)}: {line}")


class Elements(HTMLParser):
    """What a page loads by itself: scripts, styles, pictures."""

    def __init__(self):
        super().__init__()
        self.loaded = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag in ("script", "img", "iframe"):
            self.loaded.append(given.get("src") or "")
        if tag == "link" and given.get("rel") not in ("canonical", "next", "prev"):
            self.loaded.append(given.get("href") or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if MISSING:
        pytest.skip(f"{', '.join(MISSING)} not installed; run: pip install -c constraints.txt -e '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)], cwd=ROOT,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_loads_nothing_from_the_network(site):
    pages = list(site.rglob("*.html"))
    assert pages
    for page in pages:
        found = Elements()
        found.feed(page.read_text("utf-8"))
        assert found.loaded, page
        assert not [target for target in found.loaded if re.match(r"(https?:)?//", target)], page


def test_the_members_of_files_are_those_that_their_readers_check(site):
    page = (site / "reference" / "artifacts.html").read_text("utf-8")
    for member in (*NETWORK.members, *MANIFEST.members, *MANIFEST.optional):
        assert f"<code>{member}</code>" in page
    assert [kind for kind in KINDS if f"Layers of the kind {kind}" not in page] == []
    assert "an integer from 1 to 64" in page


def test_every_page_is_in_the_navigation():
    text = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    listed = re.findall(r"- ([\w/-]+\.md)$", text, re.M)
    assert sorted(listed) == sorted([str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")] +
                                    ["CHANGELOG.md", "CONTRIBUTING.md"])


def test_the_list_of_all_pages_is_the_navigation():
    """In its groups and its order, each page by its title."""
    groups = re.findall(r"^  - ([\w-]+):\n((?: {6}- [\w/-]+\.md\n?)+)", (ROOT / "mkdocs.yml").read_text("utf-8"), re.M)
    wanted = {group: [page for page in re.findall(r"- ([\w/-]+\.md)", pages) if (DOCS / page).exists()]
              for group, pages in groups}
    section = (DOCS / "index.md").read_text("utf-8").partition("\n## All pages\n")[2]
    links = {group: re.findall(r"\[([^]]+)\]\(([^)]+)\)", text)
             for group, text in re.findall(r"^- \*\*([\w-]+)\*\*: ((?:.+\n)+?)(?=- |\Z)", section, re.M)}
    assert {group: [page for _, page in found] for group, found in links.items()} == wanted
    for found in links.values():
        for title, page in found:
            first = (DOCS / page).read_text("utf-8").partition("\n")[0]
            assert f"# {' '.join(title.split())}" == first.replace("`", ""), page


def test_every_public_name_is_in_the_reference():
    import circulant

    found = re.findall(r"^::: ([\w.]+)$", (DOCS / "reference/api.md").read_text("utf-8"), re.M)
    assert found == [f"{getattr(circulant, each).__module__}.{each}" for each in circulant.__all__]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), f"{name(page)} links to {target}"


@pytest.mark.parametrize("line", [*commands()])
def test_commands_parse(line):
    words = shlex.split(line.partition(" #")[0])[1:]
    command = cli.commands[words[0]]
    assert isinstance(command, click.Command)
    with click.Context(cli) as parent:
        context = command.make_context(words[0], words[1:], parent=parent)
    if words[0] != "data":  # Its keys are those of the data set alone.
        load("digits-gru", context.params.get("overrides", ()))


LONGEST = [DOCS / "tutorials" / name for name in ("own-model.md", "choosing-sizes.md")]
"""Pages whose programs build a simulator or train several models; `make users` runs them."""


@pytest.mark.parametrize("page", [
    pytest.param(page, id=name(page), marks=[pytest.mark.soak] * (page in LONGEST))
    for page in (*sorted(DOCS.glob("tutorials/*.md")), DOCS / "training.md") if blocks(page, "python")])
def test_programs_of_the_pages_run(page, tmp_path):
    done = subprocess.run([sys.executable, "-W", "error", "-c", "\n".join(blocks(page, "python"))], cwd=tmp_path,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_every_page_says_what_comes_next():
    pages = [path for path in [*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/tutorials").glob("*.md"))]
             if not path.name.startswith(("index", "glossary", "results"))]
    assert len(pages) > 20
    assert [page.name for page in pages if not page.read_text().splitlines()[-1].startswith("**Next**: ")] == []
