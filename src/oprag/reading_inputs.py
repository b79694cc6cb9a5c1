"""Descriptions, arguments and checks that the reading tools of both frameworks share."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, ValidationError
from pydantic_core import PydanticCustomError

from oprag.errors import OptionError, RetrievalWarning
from oprag.masking import describe
from oprag.reading import StoredSources
from oprag.warn import warn

__all__ = [
    "AROUND",
    "OUTLINE",
    "RANGE",
    "AroundInput",
    "OutlineInput",
    "RangeInput",
    "check_tool_name",
    "refusal",
    "warn_if_unreadable",
]

AROUND = (
    "Read what is before and after a passage that was found, in the order of the document. Give the number of the "
    "passage: 3 for [3]."
)
RANGE = (
    "Read chunks of a source in the order of the document, by their numbers from 1. The outline tells how many there "
    "are."
)
OUTLINE = (
    "The headings, pages or parts of a source, with the numbers of their chunks and their sizes in tokens. Without a "
    "source: a list of all sources."
)


def _not_a_boolean(value: Any) -> Any:
    """Reject true and false, which pydantic converts to 1 and 0."""
    if isinstance(value, bool):
        raise PydanticCustomError("int_type", "Input should be a valid integer")
    return value


_Number = Annotated[int, BeforeValidator(_not_a_boolean)]


class AroundInput(BaseModel):
    """Arguments of `read_around`."""

    number: _Number = Field(description="The number of a passage, such as 3 for [3].")
    before: _Number = Field(default=2, description="Number of chunks to read before it.")
    after: _Number = Field(default=2, description="Number of chunks to read after it.")


class RangeInput(BaseModel):
    """Arguments of `read_range`."""

    source: str = Field(description="The name of the source, as it is beside its passages.")
    start: _Number = Field(description="The number of the first chunk, from 1.")
    end: _Number = Field(description="The number of the last chunk.")


class OutlineInput(BaseModel):
    """Arguments of `outline`."""

    source: str | None = Field(default=None, description="The name of a source; all sources are listed without one.")


def check_tool_name(option: str, value: Any, minimum: int = 1) -> None:
    """Reject names of tools that model providers do not accept."""
    if not isinstance(value, str) or not re.fullmatch(rf"[A-Za-z0-9_-]{{{minimum},48}}", value):
        raise OptionError(
            f"{option} must have {minimum} to 48 letters, digits, underscores and hyphens, got {describe(value)}", value
        )


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
