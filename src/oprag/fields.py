"""The options of `Assembly` as pydantic fields, for the adapters of frameworks that build on pydantic.

Restated statically, since editors and type checkers need that. Nothing is checked here: values go into an `Assembly` as
they are, so that every surface refuses the same things in the same words. A test holds the names and defaults together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, SkipValidation, model_validator

from oprag.assembly import Assembly, Header, MissingPosition, Order, SourceOrder, as_assembly
from oprag.errors import OptionError
from oprag.position import PositionKey
from oprag.source import SourceKey
from oprag.tokens import TokenCounter, approximate_tokens

__all__ = ["OPTIONS", "AssemblyFields", "callables", "given_options"]

OPTIONS = tuple(field.name for field in fields(Assembly))


class AssemblyFields(BaseModel):
    """The options of `Assembly`, and `annotate`.

    Only `stitch` has another default than in `Assembly`, since the framework's own objects come back.
    """

    # Search arguments may hold keys and passwords, so errors do not show them; validators are built when the first
    # object is, and not by an import. Each adapter restates this, since its framework's base class says otherwise.
    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, hide_input_in_errors=True, defer_build=True)

    k: SkipValidation[int | None] = None
    fetch_k: SkipValidation[int | None] = None
    token_budget: SkipValidation[int | None] = None
    count_tokens: SkipValidation[TokenCounter] = Field(default=approximate_tokens, exclude=True)
    order: SkipValidation[Order] = "source"
    seed: SkipValidation[int] = 0
    source_order: SkipValidation[SourceOrder] = "best"
    missing_position: SkipValidation[MissingPosition] = "last"
    source_key: SkipValidation[SourceKey | None] = None
    position_key: SkipValidation[PositionKey | None] = None
    similarity_threshold: SkipValidation[float | None] = None
    redundancy_threshold: SkipValidation[float | None] = None
    min_keep: SkipValidation[int] = 0
    neighbors: SkipValidation[int] = 0
    stitch: SkipValidation[bool] = False
    separator: SkipValidation[str] = "\n\n"
    gap: SkipValidation[str | None] = None
    header: SkipValidation[Header | None] = None
    annotate: SkipValidation[bool] = False

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        self._assembly()
        return self

    def _assembly(self, **changes: Any) -> Assembly:
        """The options as an `Assembly`, with some of them changed.

        Raises:
            OptionError: An option has a value that it cannot have.
        """
        if type(self.annotate) is not bool:
            raise OptionError(f"annotate must be True or False, got {self.annotate!r}", self.annotate)
        return as_assembly(None, {name: getattr(self, name) for name in OPTIONS} | changes)


def given_options(model: AssemblyFields) -> dict[str, Any]:
    """The options that are not what they are by default, `annotate` included."""
    fields = type(model).model_fields
    return {name: value for name in (*OPTIONS, "annotate") if (value := getattr(model, name)) != fields[name].default}


def callables(model: AssemblyFields, names: Iterable[str] = OPTIONS) -> list[str]:
    """The options that are functions of the caller, which cannot be serialized."""
    return [name for name in names if callable(value := getattr(model, name)) and value is not approximate_tokens]
