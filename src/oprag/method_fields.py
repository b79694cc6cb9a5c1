"""The options of the methods as pydantic fields; see `oprag.fields`."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import fields
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from oprag.methods.options import MethodOptions, OnError, Overflow, RankBy, as_options
from oprag.methods.prompts import Prompts

__all__ = ["METHOD_OPTIONS", "MethodFields"]

METHOD_OPTIONS = tuple(field.name for field in fields(MethodOptions))


class MethodFields(BaseModel):
    """The options of `oprag.methods.MethodOptions`."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, hide_input_in_errors=True, defer_build=True)

    method: SkipValidation[str] = "stuff"
    inner_method: SkipValidation[str] = "stuff"
    prompts: SkipValidation[Prompts | Mapping[str, Any]] = Field(default=Prompts(), exclude=True)
    passage_tokens: SkipValidation[int] = 1_024
    collapse_tokens: SkipValidation[int | None] = None
    score: SkipValidation[RankBy] = "confidence"
    variants: SkipValidation[int] = 4
    answer_threshold: SkipValidation[float] = 0.5
    source_token_budget: SkipValidation[int | None] = None
    overflow: SkipValidation[Overflow] = "error"
    cite: SkipValidation[bool] = False
    condense: SkipValidation[bool] = True
    empty_answer: SkipValidation[str] = "No passages were found for this question."
    on_error: SkipValidation[OnError] = "raise"
    max_concurrency: SkipValidation[int] = 8

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some of the fields changed, checked as at construction; pydantic's own checks nothing."""
        # What was embedded for the one need not be embedded for the other.
        shared = {"vector_cache"} & type(self).model_fields.keys()
        given = {name: getattr(self, name) for name in self.model_fields_set | shared}
        return type(self)(**{**(deepcopy(given) if deep else given), **(update or {})})

    def _method_options(self, **changes: Any) -> MethodOptions:
        """The options as `MethodOptions`, with some of them changed.

        Raises:
            OptionError: An option has a value that it cannot have.
            PromptError: A prompt cannot be used.
        """
        return as_options(None, {name: getattr(self, name) for name in METHOD_OPTIONS} | changes)
