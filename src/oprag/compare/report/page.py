"""The page: templates that escape whatever they are given, its style and script, and what a browser may load for it."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from oprag.compare.report.charts import CHART_STYLE
from oprag.compare.report.parts import Section
from oprag.errors import MissingExtraError

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["check_installed", "clean", "page", "render"]

# Control characters, halves of surrogate pairs, what turns the direction of writing around, and what is no character.
_HIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")

_COMMAND = re.compile("`([^`\n]+)`")


def clean(value: Any) -> Any:
    """A value as a page can hold it: in texts a mark stands for what would not be seen, or could turn a line around.

    Every value that a template prints goes through this, and is then escaped.
    """
    return _HIDDEN.sub("\ufffd", value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def check_installed() -> None:
    """Refuse to begin what cannot be written.

    Raises:
        MissingExtraError: The extra `compare` is not installed.
    """
    _environment()


def render(template: str, **values: Any) -> str:
    """A template with these values, each of them escaped; what comes back is not escaped again.

    Raises:
        MissingExtraError: The extra `compare` is not installed.
    """
    from markupsafe import Markup

    environment = _environment()
    return Markup(environment.get_template(template).render(values))  # noqa: S704 - the template escapes


def page(title: str, sections: Sequence[Section]) -> str:
    """The whole page.

    Args:
        title: Its title.
        sections: Its sections; pictures and bodies are taken as they are.
    """
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
    # What was made here, of values that are escaped already.
    drawn: Callable[[str], str] = Markup
    environment.filters["drawn"] = drawn
    environment.filters["told"] = lambda text: drawn(_COMMAND.sub(r"<code>\1</code>", str(escape(clean(text)))))
    # Long names of options and metrics may break behind an underscore.
    environment.filters["broken"] = lambda text: Markup("_<wbr>").join(map(escape, clean(text).split("_")))
    return environment


def _source(name: str) -> str:
    """A file beside the templates, as it is."""
    from importlib.resources import files

    return (files("oprag.compare.report") / "templates" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """What names an inline style or script that is allowed."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
