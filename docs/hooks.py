"""Pages and files from outside of docs/ that the site shows: MkDocs knows its own folder alone."""
import os
import posixpath
import re
import sys
from pathlib import Path

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
ARTIFACTS = "<!-- artifacts -->"
PAGES = ("CHANGELOG.md", "CONTRIBUTING.md")
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config) -> Files:
    """Add the pages of the root, and every file of the repository that a page links to."""
    for name in PAGES:
        files.append(File.generated(config, name, content=(ROOT / name).read_text("utf-8")))
    for page in list(files.documentation_pages()):
        for target, _ in LINK.findall(page.content_string):
            source = _outside(page.src_uri, target)
            if source is not None and files.get_file_from_path(f"files/{source}.txt") is None:
                text = (ROOT / source).read_text("utf-8")
                files.append(File.generated(config, f"files/{source}.txt", content=text))
    return files


def on_page_markdown(markdown: str, page, config, files) -> str:
    """Let links to the repository's files lead to their copies, and put the tables of artifacts in their place."""
    if ARTIFACTS in markdown:
        sys.path.append(os.fspath(ROOT / "docs"))
        from artifacts import page as tables

        markdown = markdown.replace(ARTIFACTS, tables())

    def moved(found: re.Match[str]) -> str:
        target, anchor = found[1], found[2] or ""
        source = _outside(page.file.src_uri, target)
        name = _inside(page.file.src_uri, target) if source is None else f"files/{source}.txt"
        return f"]({posixpath.relpath(name, posixpath.dirname(page.file.src_uri) or '.')}{anchor})"

    return LINK.sub(moved, markdown)


def _path(uri: str, target: str) -> str:
    """A link's target, from the root of the repository."""
    folder = posixpath.dirname(uri) if uri in PAGES else posixpath.join("docs", posixpath.dirname(uri))
    return posixpath.normpath(posixpath.join(folder, target))


def _inside(uri: str, target: str) -> str:
    """A target's name within the site."""
    path = _path(uri, target)
    return "index.md" if path == "README.md" else path.removeprefix("docs/")


def _outside(uri: str, target: str) -> str | None:
    """A target's path from the root where the site has no page of it and the repository has a file."""
    path = _path(uri, target)
    if path.startswith("docs/") or path in (*PAGES, "README.md") or not os.path.isfile(ROOT / path):
        return None
    return path
