"""The page: what sections are made of, templates that escape their values, and what a browser may load.

Pictures and bodies of sections are made here of values that are escaped already, so templates mark them as safe.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from oprag.compare.report.charts.svg import CHART_STYLE
from oprag.errors import MissingExtraError
from oprag.text_table import visible

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = [
    "HEIGHTS",
    "SHADES",
    "Figure",
    "Forest",
    "ForestRow",
    "Heading",
    "Part",
    "Points",
    "Section",
    "Table",
    "Text",
    "Verdicts",
    "check_installed",
    "clean",
    "page",
    "render",
]

_COMMAND = re.compile("`([^`\n]+)`")


SHADES, HEIGHTS = 10, 20
"""The darkest shade and the highest bar that the style knows."""


@dataclass(frozen=True)
class Text:
    """A paragraph; quiet where it explains what is above it."""

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
    """A list of sentences; a warning where a reader must not miss them."""

    kind: ClassVar[str] = "points"
    texts: Sequence[str]
    warning: bool = False


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        caption: What is in it.
        head: The title of each column.
        rows: The cells; each row has one for each column.
        names: How many columns at the left name the row.
        words: Whether its cells are words, but for those that name the row; else they are numbers.
        marked: The numbers of the rows that stand out.
        most: How many rows are shown; the others are counted.
        shades: How dark the cells of each row are, but for those that name it, from 0 to `SHADES`; None for not at all.
        bars: The heights of the bars in a last column of each row, from 0 to `HEIGHTS`.
    """

    kind: ClassVar[str] = "table"
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]] = field(repr=False)
    names: int = 1
    words: bool = False
    marked: Collection[int] = ()
    most: int = 60
    shades: Sequence[Sequence[int | None]] = field(default=(), repr=False)
    bars: Sequence[Sequence[int]] = field(default=(), repr=False)

    @property
    def more(self) -> int:
        """How many rows are left out."""
        return max(0, len(self.rows) - self.most)


@dataclass(frozen=True)
class Figure:
    """A chart with the words that belong to it: labels of its axes, samples of looks with their names."""

    kind: ClassVar[str] = "figure"
    svg: str = field(repr=False)
    title: str
    x: str
    y: str
    legend: Sequence[tuple[str, str]] = field(default=(), repr=False)


@dataclass(frozen=True)
class ForestRow:
    """A row of a forest plot: its name, the picture of its interval, and the same in figures."""

    name: str
    picture: str = field(repr=False)
    figures: str
    pooled: bool = False


@dataclass(frozen=True)
class Forest:
    """A forest plot of differences from source order: a table with a picture of each interval."""

    kind: ClassVar[str] = "forest"
    caption: str
    rows: Sequence[ForestRow]
    axis: str = field(repr=False)


@dataclass(frozen=True)
class Verdicts:
    """Questions with their answers, each in a word or two and what it rests on; there is one for each data set."""

    kind: ClassVar[str] = "verdicts"
    questions: Sequence[tuple[str, Sequence[tuple[str, str]]]]


Part = Text | Heading | Points | Table | Figure | Forest | Verdicts


@dataclass(frozen=True)
class Section:
    """A section of the report; its body is HTML that follows its parts, already escaped."""

    id: str
    title: str
    parts: Sequence[Part] = ()
    body: str = field(default="", repr=False)


def clean(value: Any) -> Any:
    """A value as a page can contain it: in texts a mark replaces what would not be seen, or could turn a line around.

    Every value that a template prints goes through this, and is then escaped.
    """
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def check_installed() -> None:
    """Refuse where the extra `compare` is not installed."""
    _environment()


def render(template: str, **values: Any) -> str:
    """A template with these values, each of them escaped; the result is not escaped again."""
    from markupsafe import Markup

    environment = _environment()
    return Markup(environment.get_template(template).render(values))  # noqa: S704 - the template escapes


def page(title: str, sections: Sequence[Section]) -> str:
    """The whole page; pictures and bodies of sections are taken as they are."""
    style, script = f"{_source('style.css')}{CHART_STYLE}", _source("script.js")
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )
    return str(render("page.html", title=title, sections=sections, style=style, script=script, policy=policy))


@cache
def _environment() -> Environment:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup, escape
    except ImportError as error:
        raise MissingExtraError("An HTML report", "compare") from error
    environment = Environment(
        loader=PackageLoader("oprag.compare.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=clean,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["commands"] = lambda text: Markup(  # noqa: S704 - of an escaped text
        _COMMAND.sub(r"<code>\1</code>", str(escape(clean(text))))
    )
    return environment


def _source(name: str) -> str:
    from importlib.resources import files

    return (files("oprag.compare.report") / "templates" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """The source of an inline style or script in a policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
