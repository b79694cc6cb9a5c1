"""Text extraction from HTML, for articles that are published as HTML."""

from __future__ import annotations

import re
from html.parser import HTMLParser

__all__ = ["html_text"]

# Elements that start a new line. Line breaks of the source are kept: published articles with `<pre>` rely on them.
_BREAKS = frozenset(
    """
    address article aside blockquote body br center dd div dl dt figure footer form h1 h2 h3 h4 h5 h6 head header hr
    html li main nav ol p pre section table tbody td tfoot th thead tr ul
    """.split()  # noqa: SIM905  # a list literal would be a page long
)
_MAX_READ = 10_000_000  # characters
_HIDDEN = frozenset(("script", "style", "title"))
_INLINE = ("i", "b", "u", "s", "a", "em", "strong", "span", "sup", "sub", "img", "font", "meta")
_TAG = re.compile(rf"</?(?:{'|'.join((*_INLINE, *sorted(_BREAKS)))})\b[^<>]*>", re.IGNORECASE)


def html_text(text: str) -> str:
    """Strip tags, scripts, styles and the title from HTML; text without tags is returned unchanged."""
    if not _TAG.search(text):
        return text
    parser = _TextParser()
    parser.feed(text)
    # The rest has an unclosed tag or comment. Closing the parser rescans it for each "<": hours for a megabyte.
    rest = parser.rawdata
    if rest.count("<") * len(rest) > _MAX_READ:
        parser.rawdata = ""
        parser.handle_data(rest)
    parser.close()
    lines = "".join(parser.parts).splitlines()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in lines)).strip()


class _TextParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._hidden_depth = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002  # signature of HTMLParser
        self._hidden_depth += tag in _HIDDEN
        self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        self._hidden_depth = max(0, self._hidden_depth - (tag in _HIDDEN))
        self._break(tag)

    def handle_data(self, data: str) -> None:
        if not self._hidden_depth:
            self.parts.append(data)

    def parse_marked_section(self, i: int, report: bool = True) -> int:  # noqa: FBT001, FBT002
        # Browsers treat it as a comment; Python raises an AssertionError for unknown sections.
        return self.parse_bogus_comment(i, report)

    def _break(self, tag: str) -> None:
        if tag in _BREAKS and self.parts and not self.parts[-1].endswith("\n"):
            self.parts.append("\n")
