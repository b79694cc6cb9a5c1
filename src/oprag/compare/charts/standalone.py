"""A chart as a file of its own."""

from __future__ import annotations

import re
from typing import Literal

from oprag.compare.charts.palette import COLOURS, THEME, paint
from oprag.compare.charts.svg import pixels
from oprag.errors import OptionError
from oprag.options import check_choice

__all__ = ["as_file"]

_MARGIN = 12
_HEAD = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)" width="[\d.]+" height="[\d.]+"')
# With the quotation marks: text of others has none that are not escaped.
_COLOUR = re.compile(r'"var\(--oprag-(\w+),#\w+\)"')


def as_file(chart: str, theme: Literal["system", "light", "dark"] = "system") -> str:
    """The chart with a margin and a background, to be kept as an .svg file.

    Args:
        chart: What a function of this package gave.
        theme: "system" for light or dark as the reader's system is, which browsers understand; "light" or "dark" for
            plain colours, which every program understands.

    Raises:
        OptionError: It is no such chart, or there is no such theme.
    """
    check_choice("theme", theme, ("system", "light", "dark"))
    head, end, body = chart.partition("</desc>\n")
    size = _HEAD.search(head)
    if size is None or not end:
        raise OptionError("chart must be a picture that a function of oprag.compare.charts gave", chart)
    width, height = (pixels(float(value) + 2 * _MARGIN) for value in size.groups())
    box = f'viewBox="-{_MARGIN} -{_MARGIN} {width} {height}" width="{width}" height="{height}"'
    page = f'<rect x="-{_MARGIN}" y="-{_MARGIN}" width="{width}" height="{height}" fill="{paint("page")}"/>\n'
    whole = _HEAD.sub(box, head, count=1) + end + page + body
    if theme == "system":
        return whole.replace(end, f"{end}<style>{THEME}</style>\n", 1)
    dark = int(theme == "dark")
    return _COLOUR.sub(lambda match: f'"{COLOURS[match[1]][dark]}"', whole)
