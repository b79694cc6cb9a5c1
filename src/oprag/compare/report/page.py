"""The parts of which the sections of a report consist."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from oprag.compare.plotting import svg_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Plot

    from oprag.compare.analysis.verdicts import Verdict

__all__ = ["Figure", "Part", "Questions", "Section", "Table", "Text", "Verdicts"]


@dataclass(frozen=True)
class Text:
    """A paragraph: a warning, or a quiet one that explains the part above, or neither."""

    kind: ClassVar[str] = "text"
    text: str
    quiet: bool = False
    warning: bool = False


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        caption: The caption.
        head: The title of each column.
        rows: The cells; each row has one for each column.
        names: Number of columns at the left that are row headers.
        words: Whether the other cells contain text instead of numbers; a reader cannot sort such a table.
        max_rows: Maximum number of rows to show; below them is the number of the others.
    """

    kind: ClassVar[str] = "table"
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]] = field(repr=False)
    names: int = 1
    words: bool = False
    max_rows: int = 1_000


@dataclass(frozen=True)
class Figure:
    """A chart with its title, and what it shows in words."""

    kind: ClassVar[str] = "figure"
    plot: Plot = field(repr=False)
    title: str
    description: str

    @property
    def address(self) -> str:
        """The chart as the address of an image, which contains it."""
        return f"data:image/svg+xml;base64,{b64encode(svg_of(self.plot)).decode()}"


@dataclass(frozen=True)
class Verdicts:
    """Verdicts, those on the same question side by side."""

    kind: ClassVar[str] = "verdicts"
    verdicts: Sequence[Verdict] = field(repr=False)


@dataclass(frozen=True)
class Questions:
    """Questions of the data with answers.

    Attributes:
        questions: For each its `name`, its `text`, the named texts `about` it, and its `sides`: for each answer its
            `name`, the `answer`, `notes`, replies of judges (`judged`), and a `map`, which is HTML.
    """

    kind: ClassVar[str] = "questions"
    questions: Sequence[Mapping[str, Any]] = field(repr=False)


Part = Text | Table | Figure | Verdicts | Questions


@dataclass(frozen=True)
class Section:
    """A section of the report."""

    id: str
    title: str
    parts: Sequence[Part]
