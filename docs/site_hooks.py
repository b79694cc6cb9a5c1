"""MkDocs hooks: links that work on GitHub work on the site, and nothing is fetched from another server.

Pages link to files of the repository, such as an example or a test. On the site each of these is a page of its own; the
changelog is one as well.
"""

from __future__ import annotations

import json
import logging
import posixpath
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

__all__ = ["fetched_from_elsewhere", "linked_outside", "links_on_site"]

ROOT = Path(__file__).parent.parent
CHANGELOG = "CHANGELOG.md"

_DOCS = "docs"
_SOURCES = "source"  # where files of the repository stand on the site
_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")
_ADDRESS = re.compile(r"(?:https?:)?//", re.IGNORECASE)
_IN_STYLE = re.compile(r"""(?:url\(|@import\s)\s*["']?((?:https?:)?//[^"')\s>]+)""", re.IGNORECASE)
_FETCHED_LINKS = {"stylesheet", "preconnect", "dns-prefetch", "preload", "modulepreload", "prefetch", "icon"}
_LANGUAGES = {".py": "python", ".toml": "toml", ".yml": "yaml", ".jsonl": "json"}

log = logging.getLogger("mkdocs.hooks.oprag")


def place_on_site(path: str) -> str:
    """Where a file of the repository stands on the site."""
    if path == CHANGELOG:
        return "changelog.md"
    if path.startswith(f"{_DOCS}/"):
        return path.removeprefix(f"{_DOCS}/")
    return f"{_SOURCES}/{path}.md"


def links_on_site(text: str, path: str) -> str:
    """The text of a file of the repository with its links as they have to be on the site.

    Args:
        text: Markdown.
        path: The file, from the root of the repository.
    """
    here = posixpath.dirname(place_on_site(path))

    def moved(link: re.Match[str]) -> str:
        target = _target(path, link[1])
        if not (ROOT / target).is_file():
            return link[0]  # MkDocs says so
        return posixpath.relpath(place_on_site(target), here or ".") + (link[2] or "")

    return _LINK.sub(moved, text)


def linked_outside(text: str, path: str) -> set[str]:
    """The files of the repository beside `docs` that a file links to."""
    targets = {_target(path, link[1]) for link in _LINK.finditer(text)}
    return {one for one in targets if not one.startswith((f"{_DOCS}/", "../")) and (ROOT / one).is_file()}


def fetched_from_elsewhere(text: str) -> list[str]:
    """The addresses of other servers that a browser asks when it shows a page, or reads a style sheet."""
    tags = _Tags()
    tags.feed(text)
    return [*(address for address in tags.fetched if _ADDRESS.match(address)), *_IN_STYLE.findall(text)]


class _Tags(HTMLParser):
    """Reads what the tags of a page make a browser fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        names = ["src", "srcset", "poster"] + (["data"] if tag == "object" else [])
        # In a drawing a link may be what is drawn.
        if tag in ("use", "image") or (tag == "link" and _FETCHED_LINKS & set(given.get("rel", "").lower().split())):
            names += ["href", "xlink:href"]
        self.fetched += [given[name].strip() for name in names if name in given]


def _target(path: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), link))


def _as_page(path: str) -> str:
    """A file of the repository as a page."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        return links_on_site(text, path)
    if path.endswith(".ipynb"):
        return links_on_site(_notebook_as_markdown(text), path)
    return f"# {path}\n\n````{_LANGUAGES.get(Path(path).suffix, 'text')}\n{text}````\n"


def _notebook_as_markdown(text: str) -> str:
    """The cells of a notebook with their printed outputs."""
    parts: list[str] = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        parts += [f"```text\n{''.join(output['text']).rstrip()}\n```" for output in cell.get("outputs", ())]
    return "\n\n".join(parts) + "\n"


def on_files(files: Any, config: Any) -> Any:
    """Add the changelog and the files that pages link to."""
    from mkdocs.structure.files import File

    waiting = {CHANGELOG}
    for file in files.documentation_pages():
        waiting |= linked_outside(file.content_string, f"{_DOCS}/{file.src_uri}")
    added: set[str] = set()
    while waiting:
        path = waiting.pop()
        added.add(path)
        files.append(File.generated(config, place_on_site(path), content=_as_page(path)))
        if path.endswith(".md"):
            waiting |= linked_outside((ROOT / path).read_text(encoding="utf-8"), path) - added
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:  # noqa: ARG001
    """Let the links of a page lead to places on the site."""
    if page.file.generated_by is not None:
        return markdown
    return links_on_site(markdown, f"{_DOCS}/{page.file.src_uri}")


def on_post_build(config: Any) -> None:
    """Warn about whatever a reader's browser would fetch from another server."""
    site = Path(config.site_dir)
    for path in sorted([*site.rglob("*.html"), *site.rglob("*.css"), *site.rglob("*.svg")]):
        for address in fetched_from_elsewhere(path.read_text(encoding="utf-8")):
            log.warning("%s would be fetched from another server: %s", path.relative_to(site), address)
