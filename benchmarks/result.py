"""The result of a benchmark: figures, tables and notes, as JSON or Markdown."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Figure", "Result", "Table", "main", "markdown", "p_value", "report_missed"]


@dataclass(frozen=True)
class Figure:
    """A measured figure, and the limit that a change must not exceed. Pages show it where there is no table.

    Attributes:
        what: The measured quantity.
        limit: The limit, in words. Missed limits go to standard error; pages show measured values only.
        measured: The value.
        reached: Whether the value is within the limit.
    """

    what: str
    limit: str
    measured: str
    reached: bool


@dataclass(frozen=True)
class Table:
    """Rows of cells with a header; the first column has words, the others numbers."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass
class Result:
    """One benchmark."""

    title: str
    about: str
    figures: list[Figure] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @classmethod
    def from_json(cls, text: str) -> Result:
        """The result that `main` printed with --json."""
        data = json.loads(text)
        data["figures"] = [Figure(**figure) for figure in data["figures"]]
        data["tables"] = [Table(**table) for table in data["tables"]]
        return cls(**data)


def p_value(value: float | None) -> str:
    """A p-value in a table; there may be none."""
    if value is None:
        return "–"
    return "< 0.001" if value < 0.0005 else f"{value:.3f}"


def markdown(result: Result) -> str:
    """Return the result as a section of a page."""
    parts = [f"## {result.title}", result.about]
    if result.figures and not result.tables:
        parts.append(_table(["figure", "measured"], [[figure.what, figure.measured] for figure in result.figures]))
    for table in result.tables:
        parts += [table.caption, _table(table.head, table.rows)]
    parts += result.notes
    return "\n\n".join(parts)


def report_missed(result: Result) -> None:
    """Print the figures that miss their limit to standard error."""
    for figure in result.figures:
        if not figure.reached:
            print(f"{result.title}: {figure.what}: {figure.measured}, limit: {figure.limit}", file=sys.stderr)


def main(run: Callable[..., Result], add_arguments: Callable[[argparse.ArgumentParser], None] | None = None) -> None:
    """Run one benchmark from the command line and print its result."""
    parser = argparse.ArgumentParser(description=run.__doc__)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    if add_arguments is not None:
        add_arguments(parser)
    options: dict[str, Any] = vars(parser.parse_args())
    as_json = options.pop("json")
    result = run(**options)
    report_missed(result)
    print(json.dumps(asdict(result)) if as_json else markdown(result))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    line = "|".join(["---", *("---:" for _ in head[1:])])
    return "\n".join([_row(head), f"|{line}|", *(_row(row) for row in rows)])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
