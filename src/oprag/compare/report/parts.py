"""What a section is put together of."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

__all__ = ["Figure", "Heading", "Part", "Points", "Section", "Table", "Text"]


@dataclass(frozen=True)
class Text:
    """A paragraph.

    Attributes:
        text: What it says.
        quiet: Whether it is an explanation of what stands above it.
    """

    kind: ClassVar[str] = "text"
    text: str
    quiet: bool = False


@dataclass(frozen=True)
class Heading:
    """A heading below that of the section."""

    kind: ClassVar[str] = "heading"
    text: str


@dataclass(frozen=True)
class Points:
    """A list of sentences."""

    kind: ClassVar[str] = "points"
    texts: Sequence[str]


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        caption: What is in it.
        head: The title of each column.
        rows: The cells; each row has one for each column.
        names: How many columns at the left name the row.
        words: The numbers of the columns that hold words, but for those that name the row; others are numbers.
        marked: The numbers of the rows that stand out.
        more: How many rows are left out.
    """

    kind: ClassVar[str] = "table"
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]] = field(repr=False)
    names: int = 1
    words: Collection[int] = ()
    marked: Collection[int] = ()
    more: int = 0


@dataclass(frozen=True)
class Figure:
    """A chart.

    Attributes:
        svg: The picture, as `oprag.compare.report.charts` gives it.
        caption: What is to be said about it.
        notes: Sentences that belong to it.
    """

    kind: ClassVar[str] = "figure"
    svg: str = field(repr=False)
    caption: str = ""
    notes: Sequence[str] = ()


Part = Text | Heading | Points | Table | Figure


@dataclass(frozen=True)
class Section:
    """A section of the report.

    Attributes:
        id: Its name in addresses.
        title: Its heading.
        parts: What stands in it.
        body: HTML that follows, already escaped; the drill-down has a template of its own.
    """

    id: str
    title: str
    parts: Sequence[Part] = ()
    body: str = field(default="", repr=False)
