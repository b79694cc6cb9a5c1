"""Validated records (pydantic models) with the error messages of oprag."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Annotated, Any, TypeVar

from oprag._internal.masking import describe, listed
from oprag.errors import ExperimentError, MissingExtraError, OpragError, OptionError
from oprag.options import check_names, plain_number

try:
    import pydantic
    from pydantic_core import PydanticCustomError
except ImportError as error:
    raise MissingExtraError("oprag.compare", "compare") from error

# Others take pydantic from here, so that a missing one is explained.
__all__ = ["Amount", "Count", "Name", "Natural", "StrictModel", "String", "Text", "message_of", "pydantic", "validated"]

_NOUNS = {"bool": "true or false", "dict": "a mapping", "int": "an integer", "list": "a list", "model": "a mapping"}
_NOUNS |= {"string": "a string", "tuple": "a list"}

Kind = TypeVar("Kind", bound="StrictModel")


class StrictModel(pydantic.BaseModel):
    """A frozen record that rejects unknown fields and explains what is invalid."""

    model_config = pydantic.ConfigDict(
        frozen=True, extra="forbid", arbitrary_types_allowed=True, hide_input_in_errors=True
    )

    def __init__(self, /, **given: Any) -> None:
        try:
            super().__init__(**given)
        except pydantic.ValidationError as error:
            # Drop pydantic's own error: it shows the values, which may be secret.
            raise _explained(error) from None

    # With this flag pydantic validates nested records without calling their __init__, so errors have the full path.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @pydantic.model_validator(mode="before")
    @classmethod
    def _check_names(cls, given: Any) -> Any:
        # Pydantic's own check does not suggest similar names.
        if isinstance(given, Mapping) and cls.model_config.get("extra") == "forbid":
            check_names(given, cls.model_fields, what="key")
        return given


def validated(kind: type[Kind], given: Any, *, place: str) -> Kind:
    """Validate a record or a mapping; error messages start with its path, such as `prices.small`."""
    try:
        return kind.model_validate(given)
    except pydantic.ValidationError as error:
        raise _explained(error, place) from None


def _explained(error: pydantic.ValidationError, place: str = "") -> OpragError:
    first = error.errors(include_url=False)[0]
    cause = first.get("ctx", {}).get("error")
    kind = type(cause) if isinstance(cause, OpragError) and not isinstance(cause, OptionError) else ExperimentError
    return kind(message_of(error, place), getattr(cause, "value", first["input"]))


def message_of(error: pydantic.ValidationError, place: str = "") -> str:
    """The first problem of a pydantic error, after its path: "models.small.use must be a string, got 7"."""
    first = error.errors(include_url=False)[0]
    kind, context, value = first["type"], first.get("ctx", {}), first["input"]
    for part in first["loc"]:
        name = f"[{part}]" if isinstance(part, int) else listed([part])
        place += name if isinstance(part, int) or not place else "" if part == "[key]" else f".{name}"
    if kind == "missing":
        return f"{place} is missing; the fields are {listed(value)}"
    if "error" in context:
        return f"{place}: {context['error']}" if place else str(context["error"])
    noun = _NOUNS.get(kind.removesuffix("_type"))
    problem = f"must be {noun}" if noun else first["msg"].replace("Input should ", "must ", 1)
    if kind == "too_short":
        problem = f"must contain at least {context['min_length']}"
    return f"{place} {problem}, got {'a mapping' if isinstance(value, Mapping) else describe(value)}".strip()


def _only(problem: str, allowed: Callable[[Any], bool]) -> Callable[[Any], Any]:
    """A validator that converts NumPy numbers and rejects values with this message."""

    def check(value: Any) -> Any:
        value = plain_number(value)
        if not allowed(value):
            raise PydanticCustomError("value", problem)
        return value

    return check


_unicode = _only("must be valid Unicode", lambda text: text.encode(errors="ignore").decode() == text)
_not_blank = _only("must not be empty", lambda text: text.strip() != "")
_count = _only("must be an integer >= 1", lambda one: type(one) is int and one >= 1)
_natural = _only("must be an integer >= 0", lambda one: type(one) is int and one >= 0)
# Integers stay integers, since amounts are stored in results files unchanged.
_amount = _only("must be a number >= 0", lambda one: type(one) in (int, float) and 0 <= one < inf)

String = Annotated[str, pydantic.Strict(), pydantic.AfterValidator(_unicode)]
Text = Annotated[String, pydantic.AfterValidator(_not_blank)]
Name = Annotated[Text, pydantic.BeforeValidator(lambda given: str(given) if type(given) is int else given)]
Count = Annotated[int, pydantic.PlainValidator(_count)]
Natural = Annotated[int, pydantic.PlainValidator(_natural)]
Amount = Annotated[float, pydantic.PlainValidator(_amount)]
