"""The options of `Assembly` as pydantic fields, for the adapters of frameworks that build on pydantic.

Restated statically, since editors and type checkers need that. Nothing is checked here: values go into an `Assembly` as
they are, so that every surface refuses the same things in the same words. A test holds the names and defaults together.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, Field, SkipValidation, model_validator

from oprag.assembly import Assembly, Header, MissingPosition, Order, SourceOrder, as_assembly
from oprag.errors import OptionError
from oprag.position import PositionKey
from oprag.source import SourceKey
from oprag.tokens import TokenCounter, approximate_tokens

if TYPE_CHECKING:
    from oprag.profile import Profile

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

    @classmethod
    def from_profile(cls, profile: Profile | str | os.PathLike[str], **options: Any) -> Self:
        """One with the options of a profile, such as `oprag.toml`; `docs/profiles.md` has the rules.

        Args:
            profile: The file, or a profile that was read.
            **options: What the constructor needs, and options that win over those of the profile.

        Raises:
            InputFileError: The file is missing, cannot be read or is no TOML.
            OptionError: The file is of another format, has a key that is unknown or cannot have its value, or says what
                would be lost here, such as a method where no answers are made.
            ValidationError: The constructor refuses what it is given (pydantic's error, which is a ValueError).
        """
        from oprag.profile.applying import made_of_profile

        return made_of_profile(cls, profile, options)

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
