"""A drawing that is as wide as a phone and grows downwards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from oprag.compare.report.charts.palette import Look, marker, paint
from oprag.compare.report.charts.svg import picture, pixels
from oprag.compare.report.charts.texts import SMALL, text_width, wrapped
from oprag.options import check_text
from oprag.text_table import escaped

__all__ = ["LINE", "MOST_LINES", "WIDTH", "Drawing", "label", "ring", "tooltip"]

WIDTH = 360.0
"""In pixels: text of 12 pixels is shown as such on the narrowest phones."""
LINE = 16.0
MOST_LINES = 8
"""Lines of a title or a name: settings that differ in many axes have long ones."""
_TITLE = 14
_SAMPLE = 30.0
_BETWEEN = 14.0


class Drawing:
    """What is drawn, from the top to the bottom.

    Args:
        title: What the chart shows; stands above it too.
        description: What is to be seen, for who cannot see it.
        note: What is said at the bottom.

    Raises:
        OptionError: One of them is no string.
    """

    def __init__(self, title: str, description: str, note: str = "") -> None:
        check_text("title", title)
        check_text("description", description)
        check_text("note", note)
        self.top = 0.0
        self._title, self._description, self._note = title, description, note
        self._elements: list[str] = []
        lines = wrapped(title, WIDTH, _TITLE, MOST_LINES)
        self.add(
            *(
                f'<text y="{pixels(_TITLE + 18 * n)}" font-size="{_TITLE}" font-weight="600">{escaped(line)}</text>'
                for n, line in enumerate(lines)
            )
        )
        self.top = 18.0 * len(lines) + 4

    def add(self, *elements: str) -> None:
        """Draw these."""
        self._elements += elements

    def paragraph(self, text: str, *, lines: int = 2) -> None:
        """Quiet text over the whole width."""
        for line in wrapped(text, WIDTH, SMALL, lines):
            self.top += LINE
            self.add(label(0, self.top - 4, line, quiet=True))

    def legend(self, entries: Iterable[tuple[Look | None, str]], *, dashes: bool) -> None:
        """Names beside samples of how they look, as many in a line as fit.

        Args:
            entries: The look and the name; None for the ring around a point.
            dashes: Whether the samples are lines with a point; else they are points.
        """
        x = WIDTH
        for shown, name in entries:
            room = _SAMPLE if dashes else 16.0
            lines = wrapped(name, WIDTH - room, SMALL, MOST_LINES)
            wide = room + max((text_width(line, SMALL) for line in lines), default=0)
            if x + wide > WIDTH:
                x = 0.0
                self.top += LINE + 2
            self.add(_sample(shown, x, self.top - 8, room - 6, dashes=dashes))
            self.add(*(label(x + room, self.top - 4 + LINE * n, line) for n, line in enumerate(lines)))
            self.top += LINE * max(0, len(lines) - 1)
            x = WIDTH if len(lines) > 1 else x + wide + _BETWEEN
        self.top += 4

    def svg(self, facts: Sequence[str]) -> str:
        """The picture.

        Args:
            facts: Sentences that follow the description in the alternative text.
        """
        self.paragraph(self._note, lines=6)
        return picture(
            self._elements,
            title=self._title,
            description=" ".join(text for text in (self._description, *facts, self._note) if text),
            width=WIDTH,
            height=self.top + 2,
            kind="oprag-chart",
            attributes=f'font-family="system-ui,sans-serif" font-size="{SMALL}" fill="{paint("ink")}"',
        )


def label(x: float, y: float, text: str, *, anchor: str = "start", quiet: bool = False, more: str = "") -> str:
    """A line of text.

    Args:
        x: Where it stands.
        y: Its base line.
        text: What it says.
        anchor: Which part of it stands at `x`.
        quiet: Whether it is a number or a note rather than a name.
        more: Other attributes, as XML.
    """
    at = "" if anchor == "start" else f' text-anchor="{anchor}"'
    colour = f' fill="{paint("quiet")}"' if quiet else ""
    return f'<text x="{pixels(x)}" y="{pixels(y)}"{at}{colour}{more and f" {more}"}>{escaped(text)}</text>'


def tooltip(*lines: str) -> str:
    """What is shown where one points at an element, to be put in it."""
    return f"<title>{escaped(chr(10).join(line for line in lines if line))}</title>"


def _sample(shown: Look | None, x: float, y: float, wide: float, *, dashes: bool) -> str:
    middle = x + wide / 2
    if shown is None:
        return ring(middle, y)
    line = ""
    if dashes:
        dash = f' stroke-dasharray="{shown.dash}"' if shown.dash else ""
        line = f'<path d="M{pixels(x)} {pixels(y)}h{pixels(wide)}" stroke="{shown.colour}" stroke-width="2"{dash}/>'
    return f'{line}<path d="{marker(shown.shape, middle, y)}" {shown.point()}/>'


def ring(x: float, y: float) -> str:
    """A ring around a point."""
    return f'<circle cx="{pixels(x)}" cy="{pixels(y)}" r="8" fill="none" stroke="{paint("ink")}" stroke-width="1.6"/>'
