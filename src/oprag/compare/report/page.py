"""The HTML page: the parts of sections, autoescaping templates, and the content security policy.

Charts and section bodies only contain values that are already escaped, so templates mark them as safe.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from oprag.compare.plotting import svg_of
from oprag.errors import MissingExtraError
from oprag.text_table import visible

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure as Plot

__all__ = [
    "Figure",
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


@dataclass(frozen=True)
class Text:
    """A paragraph; quiet ones are secondary, such as an explanation of the part above."""

    kind: ClassVar[str] = "text"
    text: str
    quiet: bool = False


@dataclass(frozen=True)
class Heading:
    """A subheading of a section."""

    kind: ClassVar[str] = "heading"
    text: str


@dataclass(frozen=True)
class Points:
    """A list of sentences; warnings are highlighted."""

    kind: ClassVar[str] = "points"
    texts: Sequence[str]
    warning: bool = False


@dataclass(frozen=True)
class Table:
    """A table, which a reader can sort by any column.

    Attributes:
        caption: The caption.
        head: The title of each column.
        rows: The cells; each row has one for each column.
        names: Number of columns at the left that are row headers.
        words: Whether the other cells contain text instead of numbers.
        max_rows: Maximum number of rows to show; the number of the others is shown.
    """

    kind: ClassVar[str] = "table"
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]] = field(repr=False)
    names: int = 1
    words: bool = False
    max_rows: int = 60

    @property
    def more(self) -> int:
        """Number of rows that are not shown."""
        return max(0, len(self.rows) - self.max_rows)


@dataclass(frozen=True)
class Figure:
    """A chart with its title."""

    kind: ClassVar[str] = "figure"
    plot: Plot = field(repr=False)
    title: str
    description: str = ""

    @property
    def svg(self) -> str:
        """The chart as SVG."""
        return svg_of(self.plot, title=self.title, description=self.description)


@dataclass(frozen=True)
class Verdicts:
    """Questions, each with one or more verdicts (one per data set): a short answer and its evidence."""

    kind: ClassVar[str] = "verdicts"
    questions: Sequence[tuple[str, Sequence[tuple[str, str]]]]


Part = Text | Heading | Points | Table | Figure | Verdicts


@dataclass(frozen=True)
class Section:
    """A section of the report; `body` is escaped HTML that follows the parts."""

    id: str
    title: str
    parts: Sequence[Part] = ()
    body: str = field(default="", repr=False)


def clean(value: Any) -> Any:
    """Replace invisible and text-direction characters of a string by a mark.

    Applied to every value that a template prints, before it is escaped.
    """
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def check_installed() -> None:
    """Raise `MissingExtraError` if the extra `compare` is not installed."""
    _environment()


def render(template: str, **values: Any) -> str:
    """Render a template with escaped values; the result is marked as safe."""
    from markupsafe import Markup

    environment = _environment()
    return Markup(environment.get_template(template).render(values))  # noqa: S704 - the template escapes


def page(title: str, sections: Sequence[Section]) -> str:
    """The whole page; charts and section bodies are not escaped again."""
    style, script = _source("style.css"), _source("script.js")
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
    environment.filters["commands"] = lambda text: Markup(  # noqa: S704 - the text is escaped
        _COMMAND.sub(r"<code>\1</code>", str(escape(clean(text))))
    )
    return environment


def _source(name: str) -> str:
    from importlib.resources import files

    return (files("oprag.compare.report") / "templates" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """The hash of an inline style or script, as a source of a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
