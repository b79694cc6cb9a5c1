"""The text of HTML, for articles that are published as such."""

from __future__ import annotations

import re
from html.parser import HTMLParser

__all__ = ["html_text"]

# Elements that begin a line. Line breaks of the source are kept: published articles with `<pre>` rely on them.
_BREAKS = frozenset(
    """
    address article aside blockquote body br center dd div dl dt figure footer form h1 h2 h3 h4 h5 h6 head header hr
    html li main nav ol p pre section table tbody td tfoot th thead tr ul
    """.split()  # noqa: SIM905  # a list would be a page long
)
_MOST_READ = 10_000_000  # characters
_UNSEEN = frozenset(("script", "style", "title"))
_INLINE = ("i", "b", "u", "s", "a", "em", "strong", "span", "sup", "sub", "img", "font", "meta")
_TAG = re.compile(rf"</?(?:{'|'.join((*_INLINE, *sorted(_BREAKS)))})\b[^<>]*>", re.IGNORECASE)


def html_text(text: str) -> str:
    """HTML without its tags, scripts, styles and title; a text without tags stays as it is."""
    if not _TAG.search(text):
        return text
    parser = _Text()
    parser.feed(text)
    # What is left has a tag or comment without an end. Closing reads it again for each "<": hours, for a megabyte.
    rest = parser.rawdata
    if rest.count("<") * len(rest) > _MOST_READ:
        parser.rawdata = ""
        parser.handle_data(rest)
    parser.close()
    lines = "".join(parser.parts).splitlines()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in lines)).strip()


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002  # what the parser hands over
        self._unseen += tag in _UNSEEN
        self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        self._unseen = max(0, self._unseen - (tag in _UNSEEN))
        self._break(tag)

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.parts.append(data)

    def parse_marked_section(self, i: int, report: bool = True) -> int:  # noqa: FBT001, FBT002
        # As browsers have it; Python raises an AssertionError for what it does not know.
        return self.parse_bogus_comment(i, report)

    def _break(self, tag: str) -> None:
        if tag in _BREAKS and self.parts and not self.parts[-1].endswith("\n"):
            self.parts.append("\n")
