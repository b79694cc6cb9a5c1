"""A page as a browser sees it, with the standard library's parser."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

__all__ = ["Node", "Page", "page_of"]

VOID = {"meta", "link", "br", "wbr", "input", "img", "hr"}


@dataclass
class Node:
    """An element."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Node | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text in it, white space made one space."""
        return " ".join("".join(self._texts()).split())

    @property
    def raw(self) -> str:
        """All text in it."""
        return "".join(self._texts())

    def all(self, *tags: str) -> list[Node]:
        """The elements below it with these tags; all of them without one."""
        found: list[Node] = []
        for child in self.children:
            if isinstance(child, Node):
                found += [child] if not tags or child.tag in tags else []
                found += child.all(*tags)
        return found

    def by_class(self, name: str) -> list[Node]:
        return [one for one in self.all() if name in one.attributes.get("class", "").split()]

    def rows(self) -> list[list[str]]:
        """The cells of a table, its head first."""
        return [[cell.text for cell in row.all("th", "td")] for row in self.all("tr")]

    def charts(self) -> list[ET.Element]:
        """The root element of each chart, which is an image in the page itself."""
        addresses = [one.attributes["src"].partition(";base64,") for one in self.all("img")]
        assert {kind for kind, *_ in addresses} <= {"data:image/svg+xml"}
        return [ET.fromstring(base64.b64decode(data, validate=True)) for *_, data in addresses]

    def _texts(self) -> Iterator[str]:
        for child in self.children:
            if isinstance(child, Node):
                yield from child._texts()
            else:
                yield child


class Page(HTMLParser):
    """The tree of a page; every tag that is opened must be closed in its place."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("root")
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        assert len(node.attributes) == len(attrs), f"an attribute is there twice: {attrs}"
        self._open[-1].children.append(node)
        if tag not in VOID:
            self._open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].children.append(Node(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)

    def section(self, name: str) -> Node:
        """A section by its id."""
        (found,) = (one for one in self.root.all("section") if one.attributes["id"] == name)
        return found

    @property
    def sections(self) -> list[str]:
        """The ids of the sections."""
        return [one.attributes["id"] for one in self.root.all("section")]

    def table(self, section: str, caption: str) -> list[list[str]]:
        """The rows of the table whose caption begins like that, the head first."""
        (found,) = (one for one in self.section(section).all("table") if one.all("caption")[0].text.startswith(caption))
        return found.rows()


def page_of(path: Path) -> Page:
    """The page in a file."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    page.close()
    assert [node.tag for node in page._open] == ["root"]
    return page
