"""Method options as pydantic fields; see `oprag.option_fields`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, SkipValidation

from oprag.methods.options import MethodOptions, OnError, Overflow, RankBy, as_method_options
from oprag.methods.prompts import Prompts
from oprag.option_fields import OptionFields
from oprag.options import descriptions

__all__ = ["METHOD_OPTIONS", "MethodFields"]

_HELP = descriptions(MethodOptions)
METHOD_OPTIONS = tuple(_HELP)


class MethodFields(OptionFields):
    """The options of `oprag.methods.MethodOptions`."""

    method: SkipValidation[str] = Field(default="stuff", description=_HELP["method"])
    inner_method: SkipValidation[str] = Field(default="stuff", description=_HELP["inner_method"])
    prompts: SkipValidation[Prompts | Mapping[str, Any]] = Field(
        default=Prompts(), description=_HELP["prompts"], exclude=True
    )
    passage_tokens: SkipValidation[int] = Field(default=1_024, description=_HELP["passage_tokens"])
    collapse_tokens: SkipValidation[int | None] = Field(default=None, description=_HELP["collapse_tokens"])
    rank_by: SkipValidation[RankBy] = Field(default="confidence", description=_HELP["rank_by"])
    variants: SkipValidation[int] = Field(default=4, description=_HELP["variants"])
    answer_threshold: SkipValidation[float] = Field(default=0.5, description=_HELP["answer_threshold"])
    source_token_budget: SkipValidation[int | None] = Field(default=None, description=_HELP["source_token_budget"])
    overflow: SkipValidation[Overflow] = Field(default="error", description=_HELP["overflow"])
    cite: SkipValidation[bool] = Field(default=False, description=_HELP["cite"])
    condense: SkipValidation[bool] = Field(default=True, description=_HELP["condense"])
    empty_answer: SkipValidation[str] = Field(
        default="No passages were found for this question.", description=_HELP["empty_answer"]
    )
    on_error: SkipValidation[OnError] = Field(default="raise", description=_HELP["on_error"])
    max_concurrency: SkipValidation[int] = Field(default=8, description=_HELP["max_concurrency"])

    def _method_options(self, **changes: Any) -> MethodOptions:
        """The options as `MethodOptions`, with changes."""
        return as_method_options(None, {name: getattr(self, name) for name in METHOD_OPTIONS} | changes)
