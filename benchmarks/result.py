"""What a benchmark found: tables, and the figures that were asked for."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Figure", "Result", "Table", "main", "markdown", "p_value"]


@dataclass(frozen=True)
class Figure:
    """A measured figure beside the one that was asked for."""

    what: str
    asked: str
    measured: str
    reached: bool


@dataclass(frozen=True)
class Table:
    """Rows of cells under a head; the first column holds words, the others numbers."""

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
    return "–" if value is None else f"{value:.3f}"


def markdown(result: Result) -> str:
    """The result as a section of a document."""
    parts = [f"## {result.title}", result.about]
    if result.figures:
        rows = [[f.what, f.asked, f.measured, "reached" if f.reached else "**missed**"] for f in result.figures]
        parts.append(_table(["figure", "asked for", "measured", ""], rows))
    for table in result.tables:
        parts += [table.caption, _table(table.head, table.rows)]
    parts += result.notes
    return "\n\n".join(parts)


def main(run: Callable[..., Result], add_arguments: Callable[[argparse.ArgumentParser], None] | None = None) -> None:
    """Run one benchmark from the command line and print what it found."""
    parser = argparse.ArgumentParser(description=run.__doc__)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    if add_arguments is not None:
        add_arguments(parser)
    options: dict[str, Any] = vars(parser.parse_args())
    as_json = options.pop("json")
    result = run(**options)
    print(json.dumps(asdict(result)) if as_json else markdown(result))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    line = "|".join([" --- ", *(" ---: " for _ in head[1:])])
    return "\n".join([_row(head), f"|{line}|", *(_row(row) for row in rows)])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
