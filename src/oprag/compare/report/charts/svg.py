"""SVG primitives for all charts: numbers, tooltips, and colors for light and dark mode.

Charts do not use a plotting library: its images are large, do not follow dark mode, and are not legible on a phone.
Titles and labels are HTML text outside the chart, which wraps; the SVG only contains numbers.
"""

from __future__ import annotations

from typing import NamedTuple

from oprag.text_table import escaped

__all__ = [
    "CHART_STYLE",
    "CIRCLE",
    "COLOURS",
    "DIAMOND",
    "MAX_NAMED",
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
"""The width of a chart, in pixels: that of the narrowest phones, so that 12-pixel text is never scaled down."""

# Colors for light and dark mode. The contrast with the page is at least 3:1 for data and 4.5:1 for text. The six data
# colors are at least 20 apart in CIELAB, also with simulated color blindness (Machado et al. 2009).
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
# SVG paths around the point: circle, square, triangle, diamond, plus, inverted triangle, cross, bar. Eight, so that the
# six colors repeat with other shapes.
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
MAX_NAMED = 16
"""Maximum number of series with a distinct style; more could not be distinguished on one chart."""


class Look(NamedTuple):
    """The style of the points and the line of a series.

    Attributes:
        colour: The value of `fill` and `stroke`.
        dash: The value of `stroke-dasharray`; empty for a solid line.
        shape: The SVG path of a marker, relative to its point.
    """

    colour: str
    dash: str
    shape: str

    def marker(self, x: float, y: float) -> str:
        """The attribute `d` of the path of a point's marker."""
        return f"M{pixels(x)} {pixels(y)}{self.shape}"

    @property
    def line(self) -> str:
        """The XML attributes of the line."""
        dash = f' stroke-dasharray="{self.dash}"' if self.dash else ""
        return f'fill="none" stroke="{self.colour}" stroke-width="2"{dash}'


def paint(name: str) -> str:
    """A CSS color variable; its fallback is the color for light mode."""
    return f"var(--oprag-{name},{COLOURS[name][0]})"


CIRCLE, DIAMOND = _SHAPES[0], _SHAPES[3]
OTHERS = Look(paint("quiet"), "", CIRCLE)
"""The style of all series after the first `MAX_NAMED`."""


def look(number: int) -> Look:
    """The style of a series, by its number from 0."""
    if number >= MAX_NAMED:
        return OTHERS
    return Look(
        paint(str(number % _HUES + 1)), dash=_DASHES[number % len(_DASHES)], shape=_SHAPES[number % len(_SHAPES)]
    )


def ring(x: float, y: float, inside: str = "") -> str:
    """A ring around a point."""
    place = f'cx="{pixels(x)}" cy="{pixels(y)}"'
    return f'<circle {place} r="8" fill="none" stroke="{paint("ink")}" stroke-width="1.6">{inside}</circle>'


def sample(shown: Look | None, *, line: bool) -> str:
    """An SVG sample of a style for a legend; None for the ring around a point."""
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
    """A tick label of an axis."""
    return f'<text x="{pixels(x)}" y="{pixels(y)}" text-anchor="{anchor}" fill="{paint("quiet")}">{text}</text>'


def tooltip(*lines: str) -> str:
    """A tooltip for the SVG element that contains it."""
    return f"<title>{escaped(chr(10).join(line for line in lines if line))}</title>"


def _css_variables(dark: int) -> str:
    return ";".join(f"--oprag-{name}:{pair[dark]}" for name, pair in COLOURS.items())


CHART_STYLE = f":root{{{_css_variables(0)}}}@media (prefers-color-scheme:dark){{:root{{{_css_variables(1)}}}}}"
"""The CSS variables of the colors, for light and dark mode."""
