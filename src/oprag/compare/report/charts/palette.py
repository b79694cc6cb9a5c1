"""How charts look: colours for light and dark pages, and dashes and shapes that need no colour to be told apart."""

from __future__ import annotations

from typing import NamedTuple

from oprag.compare.report.charts.svg import pixels

__all__ = ["CHART_STYLE", "COLOURS", "MOST_NAMED", "OTHERS", "THEME", "Look", "look", "marker", "paint"]

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
    "heat": ("#0f6fb5", "#1f6feb"),
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
    """How a line or a group of dots looks.

    Attributes:
        colour: For `fill` and `stroke`.
        dash: For `stroke-dasharray`; "" for a whole line.
        shape: The number of the shape of its points.
        hollow: Whether its points have a border alone.
    """

    colour: str
    dash: str
    shape: int
    hollow: bool = False

    def point(self, border: str = "") -> str:
        """The attributes of its points, as XML.

        Args:
            border: Those of the border of a point that is not hollow.
        """
        if self.hollow:
            return f'fill="{paint("page")}" stroke="{self.colour}" stroke-width="1.8"'
        return f'fill="{self.colour}"{border and f" {border}"}'


def paint(name: str) -> str:
    """A colour that a page can set, and that is the one for light pages where it does not."""
    return f"var(--oprag-{name},{COLOURS[name][0]})"


OTHERS = Look(paint("quiet"), "", 0)
"""What comes behind those that can be told apart."""


def look(number: int) -> Look:
    """The look of a line or group, counted from 0."""
    if number >= MOST_NAMED:
        return OTHERS
    return Look(
        colour=paint(str(number % _HUES + 1)),
        dash=_DASHES[number % len(_DASHES)],
        shape=number % len(_SHAPES),
        hollow=number >= len(_SHAPES),
    )


def marker(shape: int, x: float, y: float) -> str:
    """The path of a point, as `d`."""
    return f"M{pixels(x)} {pixels(y)}{_SHAPES[shape]}"


def _values(dark: int) -> str:
    return ";".join(f"--oprag-{name}:{pair[dark]}" for name, pair in COLOURS.items())


THEME = f":root{{{_values(0)}}}@media (prefers-color-scheme:dark){{:root{{{_values(1)}}}}}"
"""The colours, light or dark as the reader's system is."""

CHART_STYLE = f"{THEME}.oprag-chart{{display:block;width:100%;max-width:540px;height:auto}}"
"""The style of a page that has charts in it: their colours and their width."""
