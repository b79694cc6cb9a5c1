"""A heat map: the score for each pair of thresholds, say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from oprag.compare.report.charts.drawing import LINE, WIDTH, Drawing, label, tooltip
from oprag.compare.report.charts.palette import paint
from oprag.compare.report.charts.scale import number
from oprag.compare.report.charts.svg import pixels
from oprag.compare.report.charts.texts import SMALL, clipped, text_width, wrapped
from oprag.errors import OptionError
from oprag.masking import describe
from oprag.options import check_text
from oprag.text_table import escaped

__all__ = ["heat_map"]

_WIDEST_NAME = 120.0
_WIDEST_CELL = 90.0
_LONGEST_COLUMN = 110.0
_CELL = 26.0
_MANY_ROWS, _LOWEST_CELL = 60, 16.0
_MOST_LINES, _NAME_LINE = 3, 14.0
_WIDE_ENOUGH = 52.0
"""Names of columns are broken into lines where a cell is so wide, and else stand upright."""
# From faint to strong, so far that text on it keeps a contrast of 4.5 to 1 in light and dark.
_FAINT, _STRONG = 0.06, 0.72
_KEY_STEPS = 8


def heat_map(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    *,
    title: str,
    description: str,
    row_title: str,
    column_title: str,
    show: str = "{:.2f}",
    note: str = "",
) -> str:
    """Cells that are the stronger in colour the higher their value is, with the value in them where it fits.

    The colours go from the lowest to the highest value there is; a cell without a value is empty and says so.

    Args:
        rows: The names of the rows, from the top.
        columns: The names of the columns, from the left.
        values: A row of values for each row, one for each column; None where there is none.
        title: What the chart shows.
        description: What is to be seen, for who cannot see it.
        row_title: What the rows are.
        column_title: What the columns are.
        show: How a value is written, as a format with one field, such as "{:.0%}".
        note: What is said below the chart in small type, such as what the values are; "" for nothing.

    Returns:
        An `<svg>` element.

    Raises:
        OptionError: There are not as many values as rows and columns, a value is no finite number, `show` is no such
            format, or a text is no string.
    """
    _check_names(rows, columns, row_title, column_title)
    table = _checked(rows, columns, values)
    there = [value for row in table for value in row if value is not None]
    texts = [[_shown(show, value) for value in row] for row in table]
    drawing = Drawing(title, description, note)
    if not there:
        drawing.paragraph("No values.")
        return drawing.svg(["There are no values."])
    low, high = min(there), max(there)
    drawing.paragraph(f"→ {column_title}")
    drawing.paragraph(f"↓ {row_title}")
    left = 6 + min(_WIDEST_NAME, max(text_width(row, SMALL) for row in rows))
    wide = min(_WIDEST_CELL, (WIDTH - left) / len(columns))
    drawing.top += 4
    drawing.add(*_heads(columns, left, wide, drawing))
    names = [wrapped(row, left - 6, SMALL, 1 if len(rows) > _MANY_ROWS else _MOST_LINES) for row in rows]
    tall = _LOWEST_CELL if len(rows) > _MANY_ROWS else max(_CELL, max(map(len, names)) * _NAME_LINE + 6)
    places = [drawing.top + tall * row for row in range(len(rows))]
    for name, lines, top in zip(rows, names, places, strict=True):
        drawing.add(*_row_name(name, lines, left, top, tall))
    empty: list[str] = []
    full: list[str] = []
    written: list[str] = []
    fits = max(text_width(text, SMALL) for row in texts for text in row) <= wide - 4
    for row, top in enumerate(places):
        for column, value in enumerate(table[row]):
            x, text = left + column * wide, texts[row][column]
            tip = tooltip(f"{row_title} {rows[row]}", f"{column_title} {columns[column]}", text)
            shade = None if value is None else _opacity(value, low, high)
            (empty if shade is None else full).append(_cell(x, top, (wide, tall), shade, tip))
            if fits:
                written.append(label(x + wide / 2, top + tall / 2 + 4, text, anchor="middle"))
    drawing.add(f'<g class="oprag-cells" fill="{paint("heat")}">', *full, "</g>")
    drawing.add(f'<g class="oprag-none" fill="{paint("page")}" stroke="{paint("grid")}">', *empty, "</g>")
    drawing.add('<g class="oprag-values" pointer-events="none">', *written, "</g>")
    drawing.top += tall * len(rows)
    drawing.add(*_key(_shown(show, low), _shown(show, high), drawing, same=low == high))
    return drawing.svg(_facts(table, (rows, columns), (row_title, column_title), show))


def _check_names(rows: Sequence[str], columns: Sequence[str], row_title: str, column_title: str) -> None:
    for kind, names in (("row", rows), ("column", columns)):
        for place, name in enumerate(names):
            check_text(f"the name of {kind} {place}", name)
    check_text("row_title", row_title)
    check_text("column_title", column_title)


def _checked(
    rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float | None]]
) -> list[list[float | None]]:
    if len(values) != len(rows) or any(len(row) != len(columns) for row in values):
        raise OptionError(
            f"values must have {len(rows)} rows of {len(columns)} values, as there are names, "
            f"got {len(values)} of {sorted({len(row) for row in values})}",
            values,
        )
    return [
        [
            None if value is None else number(value, f"row {rows[y]!r} and column {columns[x]!r}")
            for x, value in enumerate(row)
        ]
        for y, row in enumerate(values)
    ]


def _shown(show: str, value: float | None) -> str:
    if value is None:
        return "–"
    try:
        return show.format(value).replace("-", "−")
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise OptionError(
            f"show must be a format for one number, such as '{{:.2f}}', got {describe(show)}", show
        ) from error


def _opacity(value: float, low: float, high: float) -> float:
    part = (value - low) / (high - low) if high > low else 0.5
    return _FAINT + (_STRONG - _FAINT) * part


def _cell(x: float, y: float, size: tuple[float, float], opacity: float | None, tip: str) -> str:
    # A gap between cells, as long as they are wide enough for it.
    wide, tall = size
    gap = 1.0 if wide > 6 else 0.0
    strong = "" if opacity is None else f' fill-opacity="{opacity:.3f}"'
    return (
        f'<rect x="{pixels(x)}" y="{pixels(y)}" width="{pixels(wide - gap)}" height="{pixels(tall - gap)}"{strong}>'
        f"{tip}</rect>"
    )


def _heads(columns: Sequence[str], left: float, wide: float, drawing: Drawing) -> Iterator[str]:
    """The names of the columns: level where they fit, else upright, each or every few of them."""
    longest = max(text_width(name, SMALL) for name in columns)
    if longest <= wide - 4 or wide >= _WIDE_ENOUGH:
        names = [wrapped(name, wide - 4, SMALL, _MOST_LINES) for name in columns]
        drawing.top += _NAME_LINE * max(map(len, names)) + 2
        for place, lines in enumerate(names):
            for line, text in enumerate(reversed(lines)):
                middle = left + (place + 0.5) * wide
                yield label(middle, drawing.top - 5 - _NAME_LINE * line, text, anchor="middle")
        return
    drawing.top += min(longest, _LONGEST_COLUMN) + 8
    for place in range(0, len(columns), ceil((SMALL + 2) / wide)):
        x, y = left + (place + 0.5) * wide + 4, drawing.top - 4
        name = clipped(columns[place], _LONGEST_COLUMN, SMALL)
        yield label(x, y, name, more=f'transform="rotate(-90 {pixels(x)} {pixels(y)})"')


def _row_name(name: str, lines: Sequence[str], left: float, top: float, tall: float) -> Iterator[str]:
    first = top + tall / 2 + 4 - _NAME_LINE / 2 * (len(lines) - 1)
    yield f"<g><title>{escaped(name)}</title>"
    for place, line in enumerate(lines):
        yield label(left - 6, first + _NAME_LINE * place, line, anchor="end")
    yield "</g>"


def _key(low: str, high: str, drawing: Drawing, *, same: bool) -> Iterator[str]:
    drawing.top += LINE + 8
    x, y = 0.0, drawing.top - 4
    if not same:
        yield label(x, y, low, quiet=True)
        x += text_width(low, SMALL) + 6
    for step in range(1 if same else _KEY_STEPS):
        opacity = _opacity(step, 0, 0 if same else _KEY_STEPS - 1)
        yield (
            f'<rect x="{pixels(x)}" y="{pixels(y - 11)}" width="16" height="14" fill="{paint("heat")}"'
            f' fill-opacity="{opacity:.3f}"/>'
        )
        x += 16
    yield label(x + 6, y, high, quiet=True)


def _facts(
    table: Sequence[Sequence[float | None]],
    names: tuple[Sequence[str], Sequence[str]],
    titles: tuple[str, str],
    show: str,
) -> list[str]:
    """The size, and where the lowest and the highest value are, as sentences."""
    facts = [f"{len(names[0])} rows ({titles[0]}), {len(names[1])} columns ({titles[1]})."]
    cells = [
        (value, row, column) for row, line in enumerate(table) for column, value in enumerate(line) if value is not None
    ]
    for word, cell in (("Lowest", min(cells)), ("Highest", max(cells, key=lambda cell: cell[0]))):
        value, row, column = cell
        facts.append(f"{word}: {_shown(show, value)} at {titles[0]} {names[0][row]}, {titles[1]} {names[1][column]}.")
    return facts
