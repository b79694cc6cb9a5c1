"""The tools of an agent: their names, descriptions, arguments and functions, which each framework converts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple, get_args

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, create_model
from pydantic_core import PydanticCustomError

from oprag._internal.masking import describe
from oprag._internal.warn import warn
from oprag.agents.reading import Reading, StoredSources
from oprag.agents.search_result_blocks import Form
from oprag.agents.working_context import WorkingContext
from oprag.errors import OptionError, RetrievalWarning
from oprag.options import NO_SEARCH, ContextOptions, check_choice

__all__ = [
    "DEFAULT_K",
    "READING_TOOLS",
    "SEARCH",
    "AgentTool",
    "Argument",
    "ReadingTool",
    "check_tool_name",
    "gathering_options",
    "refusal",
    "schema_of",
    "search_description",
    "warn_if_unreadable",
]

DEFAULT_K = 16
"""The number of chunks that a search returns by default."""


class Argument(NamedTuple):
    """An argument of a tool, with its description for the model."""

    type: type  # str, int or bool
    description: str
    default: Any = ...  # it is required
    optional: bool = False  # whether it may be None


@dataclass(frozen=True)
class AgentTool:
    """A tool of an agent, with its description for the model."""

    name: str
    description: str
    arguments: Mapping[str, Argument]  # by name


@dataclass(frozen=True)
class ReadingTool(AgentTool):
    """A tool that reads the sources of a store."""

    read: Callable[..., Reading]  # given the sources, the working context of the agent and the arguments
    numbered: bool = False  # whether it uses the working context, which is None for an agent without one


def _around(sources: StoredSources, working: WorkingContext | None, number: int, **sizes: int) -> Reading:
    if not working:
        raise OptionError(
            "no passages are numbered yet: search first, in an agent with a working context; or read a range of "
            "chunks, which needs no number",
            number,
        )
    return sources.around(working.chunk(number), **sizes)


SEARCH = AgentTool(
    "search",
    "Search the documents. Returns passages in the order of their source. Where passages have numbers, such as [1], "
    "cite them by these; a number without text refers to a passage of an earlier search.",
    {"query": Argument(str, "What to search for, as a question or in keywords.")},
)
_DESCRIPTIONS: Mapping[Form, str] = {
    "text": SEARCH.description,
    # A model that is given blocks cites without being told so.
    "search_result": "Search the documents. Returns passages in the order of their source. A number without text, such "
    "as [1], refers to a passage of an earlier search.",
}
"""The description of the search by the form of its results."""
READING_TOOLS = (
    ReadingTool(
        "read_around",
        "Read what is before and after a passage that was found, in the order of the document. Give the number of the "
        "passage: 3 for [3].",
        {
            "number": Argument(int, "The number of a passage, such as 3 for [3]."),
            "before": Argument(int, "Number of chunks to read before it.", 2),
            "after": Argument(int, "Number of chunks to read after it.", 2),
        },
        _around,
        numbered=True,
    ),
    ReadingTool(
        "read_range",
        "Read chunks of a source in the order of the document, by their numbers from 1. The outline tells how many "
        "there are.",
        {
            "source": Argument(str, "The name of the source, as it is beside its passages."),
            "start": Argument(int, "The number of the first chunk, from 1."),
            "end": Argument(int, "The number of the last chunk."),
        },
        lambda sources, _, **arguments: sources.range(**arguments),
    ),
    ReadingTool(
        "outline",
        "The headings, pages or parts of a source, with the numbers of their chunks and their sizes in tokens. Without "
        "a source: a list of all sources.",
        {"source": Argument(str, "The name of a source; all sources are listed without one.", None, optional=True)},
        lambda sources, _, source: Reading([], sources.outline(source), ""),
    ),
    ReadingTool(
        "grep",
        "Find exact words or a regular expression in a source, or in all sources, and read the passages that contain "
        "them, in the order of the document. Use it for names, numbers and terms; use the search for questions.",
        {
            "pattern": Argument(str, "The text to find, or a regular expression as in Python."),
            "source": Argument(str, "The name of a source; all sources are searched without one.", None, optional=True),
            "regex": Argument(bool, "Whether the pattern is a regular expression.", default=False),
            "ignore_case": Argument(bool, "Whether upper and lower case are equal.", default=False),
            "limit": Argument(int, "Maximum number of chunks to read.", 20),
        },
        lambda sources, _, **arguments: sources.grep(**arguments),
    ),
)


def _not_a_boolean(value: Any) -> Any:
    """Reject true and false, which pydantic converts to 1 and 0."""
    if isinstance(value, bool):
        raise PydanticCustomError("int_type", "Input should be a valid integer")
    return value


def schema_of(tool: AgentTool) -> type[BaseModel]:
    """The arguments of a tool as a pydantic model."""
    fields: dict[str, Any] = {}
    for name, one in tool.arguments.items():
        kind: Any = Annotated[int, BeforeValidator(_not_a_boolean)] if one.type is int else one.type
        fields[name] = (kind | None if one.optional else kind, Field(one.default, description=one.description))
    return create_model(tool.name, **fields)


def check_tool_name(option: str, value: Any, minimum: int = 1) -> None:
    """Reject names of tools that model providers do not accept."""
    if not isinstance(value, str) or not re.fullmatch(rf"[A-Za-z0-9_-]{{{minimum},48}}", value):
        raise OptionError(
            f"{option} must have {minimum} to 48 letters, digits, underscores and hyphens, got {describe(value)}", value
        )


def search_description(name: str, description: str | None, content: Form) -> str:
    """The description of a search tool, whose name and form of results are checked."""
    check_tool_name("name", name)
    check_choice("content", content, get_args(Form))
    return _DESCRIPTIONS[content] if description is None else description


def gathering_options(of_search: ContextOptions) -> ContextOptions:
    """The options of a working context for what a retriever with these options finds."""
    return replace(of_search, token_budget=None, **NO_SEARCH)


def refusal(error: ValidationError) -> str:
    """The names and faults of invalid arguments, without their values."""
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())


def warn_if_unreadable(sources: StoredSources) -> None:
    """Warn if the store cannot list its chunks under the filter of the search."""
    if not sources.readable():
        warn(
            "the reading tools will refuse every call: the store cannot list its chunks under the filter of the search",
            RetrievalWarning,
            cause="reading tools without a store that lists chunks",
        )
