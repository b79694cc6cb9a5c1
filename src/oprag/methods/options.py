"""The options of the methods, declared once for every surface."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any, Literal, get_args

from oprag._internal.masking import describe
from oprag.errors import OptionError
from oprag.methods.prompts import Prompts, as_prompts
from oprag.options import (
    ContextOptions,
    check_bool,
    check_choice,
    check_cosine,
    check_count,
    check_names,
    check_text,
    option,
    with_plain_numbers,
)
from oprag.pipeline.render import CitedHeader

__all__ = ["COLLAPSE_TOKENS", "MethodOptions", "OnError", "Overflow", "RankBy", "as_method_options"]

RankBy = Literal["confidence", "cosine"]
Overflow = Literal["error", "truncate_middle", "truncate_end"]
OnError = Literal["raise", "skip"]

COLLAPSE_TOKENS = 8_192
"""Default of `collapse_tokens` without a token budget."""


@dataclass(frozen=True, kw_only=True)
class MethodOptions:
    """How a question is answered from a context.

    As in `ContextOptions`, the metadata of each field contains its description.

    Raises:
        OptionError: An option is invalid.
        PromptError: A prompt cannot be used.
    """

    method: str = option("stuff", "Name of the method that answers the question.")
    inner_method: str = option(
        "stuff", "For step_down and reciprocal: method that answers each question that they generate."
    )
    prompts: Prompts = option(Prompts(), "Your own prompts, by step name; other steps use the default prompts.")
    passage_tokens: int = option(
        1_024,
        "Maximum context tokens per model call (map_reduce, refine and map_rerank); map_reduce and refine combine "
        "short passages.",
    )
    collapse_tokens: int | None = option(
        None,
        "Maximum tokens of partial answers per prompt (map_reduce). None: token_budget, or 8,192 without token_budget.",
    )
    rank_by: RankBy = option(
        "confidence",
        "Rank answers by the model's confidence, or by cosine similarity to the question (map_rerank).",
    )
    variants: int = option(4, "Number of questions to generate (step_down and reciprocal).")
    answer_threshold: float = option(
        0.5, "Minimum cosine similarity of an answer to the question; answers below it are left out (reciprocal)."
    )
    source_token_budget: int | None = option(
        None, "Maximum tokens of whole sources in a prompt (long_context and self_route)."
    )
    overflow: Overflow = option(
        "error",
        "What to do if whole sources do not fit (long_context and self_route): error, truncate_middle or truncate_end.",
    )
    cite: bool = option(
        default=False,
        description="Number the passages, and instruct the model to cite them as [1] after each statement.",
    )
    condense: bool = option(default=True, description="Rewrite a follow-up as a standalone question before retrieval.")
    empty_answer: str = option(
        "No passages were found for this question.", "Answer if nothing is retrieved; the model is not called."
    )
    on_error: OnError = option(
        "raise",
        "What to do if a model call fails: raise an error, or skip the call (recorded in the answer; raises if no "
        "answer is left).",
    )
    max_concurrency: int = option(8, "Maximum number of concurrent model calls, over all questions of a batch.")

    def __post_init__(self) -> None:
        with_plain_numbers(self)
        for name in ("method", "inner_method"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value:
                raise OptionError(f"{name} must be the name of a method, got {describe(value)}", value)
        object.__setattr__(self, "prompts", as_prompts(self.prompts))
        for name in ("passage_tokens", "variants", "max_concurrency"):
            check_count(name, getattr(self, name), optional=False)
        check_count("collapse_tokens", self.collapse_tokens)
        check_count("source_token_budget", self.source_token_budget)
        check_choice("rank_by", self.rank_by, get_args(RankBy))
        check_choice("overflow", self.overflow, get_args(Overflow))
        check_choice("on_error", self.on_error, get_args(OnError))
        check_cosine("answer_threshold", self.answer_threshold, optional=False)
        check_bool("cite", self.cite)
        check_bool("condense", self.condense)
        check_text("empty_answer", self.empty_answer)

    def numbered(self, context_options: ContextOptions) -> ContextOptions:
        """Adapt context options for numbered passages if `cite=True`; otherwise return them unchanged.

        The number is added to the header, so that the token budget includes it. Chunks are not stitched, so that a
        marker cites a chunk instead of a long passage. Numbers in their text are shown with spaces, as `[ 2 ]`, so that
        they are not read as those of passages.

        Args:
            context_options: The options of the context.

        Raises:
            OptionError: The header is a function, to which the number cannot be added.
        """
        if not self.cite:
            return context_options
        header = context_options.header
        if callable(header):
            raise OptionError(
                "header cannot be a function with cite=True, which adds a number to it; use a string such as "
                '"[{number}] {source}"',
                header,
            )
        if header is None or all(name != "number" for _, name, _, _ in Formatter().parse(header)):
            header = f"[{{number}}] {header or ''}".rstrip()
        return dataclasses.replace(context_options, header=CitedHeader(header), stitch=False)


def as_method_options(options: MethodOptions | None, changes: Mapping[str, Any]) -> MethodOptions:
    """The options, or the default ones, with changes."""
    check_names(changes, MethodOptions.__dataclass_fields__)
    return dataclasses.replace(options or MethodOptions(), **changes)
