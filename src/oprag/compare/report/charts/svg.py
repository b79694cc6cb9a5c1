"""What every picture in SVG needs: numbers, tooltips, and colours for light and dark pages.

Charts are our own few lines because the pictures of a plotting library are large, and neither follow a page into dark
mode nor stay legible on a phone. Words belong beside a chart, in HTML, which wraps: a drawing has numbers alone.
"""

from __future__ import annotations

from typing import NamedTuple

from oprag.text_table import escaped

__all__ = [
    "CHART_STYLE",
    "CIRCLE",
    "COLOURS",
    "DIAMOND",
    "MOST_NAMED",
    "OTHERS",
    "WIDTH",
    "Look",
    "label",
    "look",
    "paint",
    "pixels",
    "ring",
    "sample",
    "tooltip",
]

WIDTH = 360.0
"""The width of a chart, in pixels: that of the narrowest phones, where text of 12 pixels is then shown as such."""

# Light, dark. Those of data have a contrast of 3 to 1 and more with the page, those of text 4.5 to 1. The first six are
# 20 and more apart in CIELAB, also as people see them who lack one kind of cones (Machado et al. 2009).
COLOURS = {
    "1": ("#0f62b5", "#4a93ff"),
    "2": ("#ad2c0c", "#e07a2a"),
    "3": ("#0f9d68", "#20e0a0"),
    "4": ("#c4589a", "#bf7ab5"),
    "5": ("#a68f00", "#efe315"),
    "6": ("#2b2f36", "#d5ecf5"),
    "ink": ("#222222", "#e6edf3"),
    "quiet": ("#59636e", "#9aa4af"),
    "grid": ("#e3e7eb", "#2b323b"),
    "page": ("#ffffff", "#0d1117"),
}
_HUES = 6
_DASHES = ("", "7 3", "2 2.5", "9 3 2 3", "13 4")
# Around the point: circle, square, triangle, diamond, plus, triangle upside down, cross, bar. Eight, so that the six
# colours come back with other shapes.
_SHAPES = (
    "m-3.8 0a3.8 3.8 0 1 0 7.6 0a3.8 3.8 0 1 0-7.6 0z",
    "m-3.4-3.4h6.8v6.8h-6.8z",
    "m0-4.8l4.6 8h-9.2z",
    "m0-5l4.6 5l-4.6 5l-4.6-5z",
    "m-1.5-4.6h3v3.1h3.1v3h-3.1v3.1h-3v-3.1h-3.1v-3h3.1z",
    "m0 4.8l4.6-8h-9.2z",
    "m0-1.7l2.9-2.9l1.7 1.7l-2.9 2.9l2.9 2.9l-1.7 1.7l-2.9-2.9l-2.9 2.9l-1.7-1.7l2.9-2.9l-2.9-2.9l1.7-1.7z",
    "m-5-1.9h10v3.8h-10z",
)
MOST_NAMED = 16
"""More than these cannot be told apart on one chart."""


class Look(NamedTuple):
    """How the points and the line of a series look.

    Attributes:
        colour: For `fill` and `stroke`.
        dash: For `stroke-dasharray`; "" for a solid line.
        shape: The path of a point, from its place on.
    """

    colour: str
    dash: str
    shape: str

    def marker(self, x: float, y: float) -> str:
        """The path of a point, as `d`."""
        return f"M{pixels(x)} {pixels(y)}{self.shape}"

    @property
    def line(self) -> str:
        """The attributes of its line, as XML."""
        dash = f' stroke-dasharray="{self.dash}"' if self.dash else ""
        return f'fill="none" stroke="{self.colour}" stroke-width="2"{dash}'


def paint(name: str) -> str:
    """A colour that a page can set, and that is the one for light pages where it does not."""
    return f"var(--oprag-{name},{COLOURS[name][0]})"


CIRCLE, DIAMOND = _SHAPES[0], _SHAPES[3]
OTHERS = Look(paint("quiet"), "", CIRCLE)
"""The look of all after those that can be told apart."""


def look(number: int) -> Look:
    """The look of a series, counted from 0."""
    if number >= MOST_NAMED:
        return OTHERS
    return Look(
        paint(str(number % _HUES + 1)), dash=_DASHES[number % len(_DASHES)], shape=_SHAPES[number % len(_SHAPES)]
    )


def ring(x: float, y: float, inside: str = "") -> str:
    """A ring around a point."""
    place = f'cx="{pixels(x)}" cy="{pixels(y)}"'
    return f'<circle {place} r="8" fill="none" stroke="{paint("ink")}" stroke-width="1.6">{inside}</circle>'


def sample(shown: Look | None, *, line: bool) -> str:
    """A picture of how something looks, for a legend; None for the ring around a point."""
    width = 30 if line else 16
    if shown is None:
        drawn = ring(width / 2, 9)
    else:
        drawn = f'<path d="M0 9H{width}" {shown.line}/>' if line else ""
        drawn += f'<path d="{shown.marker(width / 2, 9)}" fill="{shown.colour}"/>'
    return (
        f'<svg class="oprag-key" viewBox="0 0 {width} 18" width="{width}" height="18" aria-hidden="true">{drawn}</svg>'
    )


def pixels(value: float) -> str:
    """A coordinate with at most one decimal."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def label(x: float, y: float, text: str, *, anchor: str) -> str:
    """A number at an axis."""
    return f'<text x="{pixels(x)}" y="{pixels(y)}" text-anchor="{anchor}" fill="{paint("quiet")}">{text}</text>'


def tooltip(*lines: str) -> str:
    """The tooltip of the element that contains it."""
    return f"<title>{escaped(chr(10).join(line for line in lines if line))}</title>"


def _values(dark: int) -> str:
    return ";".join(f"--oprag-{name}:{pair[dark]}" for name, pair in COLOURS.items())


CHART_STYLE = f":root{{{_values(0)}}}@media (prefers-color-scheme:dark){{:root{{{_values(1)}}}}}"
"""The colours, light or dark as the reader's system is."""
