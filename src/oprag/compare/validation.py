"""Validated records (pydantic models) with the error messages of oprag."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Annotated, Any, TypeVar

from oprag.errors import ExperimentError, MissingExtraError, OpragError, OptionError
from oprag.masking import describe, listed
from oprag.options import check_names, plain_number

try:
    from pydantic import (
        AliasChoices,
        BaseModel,
        BeforeValidator,
        ConfigDict,
        Field,
        PlainValidator,
        Strict,
        ValidationError,
        model_validator,
    )
    from pydantic_core import PydanticCustomError
except ImportError as error:
    raise MissingExtraError("oprag.compare", "compare") from error

__all__ = [
    "AliasChoices",
    "Amount",
    "BeforeValidator",
    "Boolean",
    "Count",
    "Field",
    "Integer",
    "Name",
    "Natural",
    "PlainValidator",
    "PydanticCustomError",
    "StrictModel",
    "String",
    "Text",
    "explained",
    "message_of",
    "model_validator",
    "validated",
]

_NOUNS = {
    "bool": "true or false",
    "dict": "a mapping",
    "float": "a number",
    "int": "an integer",
    "list": "a list",
    "model": "a mapping",
    "string": "a string",
    "tuple": "a list",
}

Kind = TypeVar("Kind", bound="StrictModel")


class StrictModel(BaseModel):
    """A frozen record that rejects unknown fields and explains what is invalid."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, hide_input_in_errors=True)

    def __init__(self, /, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            # Drop pydantic's own error: it shows the values, which may be secret.
            raise explained(error) from None

    # With this flag pydantic validates nested records without calling their __init__, so errors have the full path.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @model_validator(mode="before")
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
    except ValidationError as error:
        raise explained(error, place=place) from None


def explained(error: ValidationError, *, place: str = "") -> OpragError:
    """The first problem of a pydantic error as an `OpragError`, with its path and masked values."""
    first = error.errors(include_url=False)[0]
    cause = first.get("ctx", {}).get("error")
    kind = type(cause) if isinstance(cause, OpragError) and not isinstance(cause, OptionError) else ExperimentError
    return kind(message_of(error, place), getattr(cause, "value", first["input"]))


def message_of(error: ValidationError, place: str = "") -> str:
    """The first problem of a pydantic error, after its path: "models.small.use must be a string, got 7"."""
    first = error.errors(include_url=False)[0]
    kind, context, value = first["type"], first.get("ctx", {}), first["input"]
    where = _place_of(first["loc"], place)
    if kind == "missing":
        return f"{where} is missing; the fields are {listed(value)}"
    if "error" in context:
        return f"{where}: {context['error']}" if where else str(context["error"])
    noun = _NOUNS.get(kind.removesuffix("_type"))
    problem = f"must be {noun}" if noun else first["msg"].replace("Input should ", "must ", 1)
    if kind == "too_short":
        problem = f"must contain at least {context['min_length']}"
    got = f", got {'a mapping' if isinstance(value, Mapping) else describe(value)}"
    return f"{where} {problem}{got if problem.startswith('must ') else ''}".strip()


def _place_of(location: Sequence[str | int], start: str = "") -> str:
    """The path of a value in a record, such as `models.small.retries` or `answers[1]`."""
    place = start
    for part in location:
        if isinstance(part, int):
            place += f"[{part}]"
        elif part != "[key]":
            name = listed([part])
            place += f".{name}" if place else name
    return place


def _text(value: Any) -> str:
    text = _string(value)
    if not text.strip():
        raise PydanticCustomError("blank", "must not be empty")
    return text


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise PydanticCustomError("string_type", "must be a string")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise PydanticCustomError(
            "surrogate",
            "has an unpaired surrogate, which cannot be written as UTF-8, at character {start}",
            {"start": f"{error.start:,}"},
        ) from None
    return value


def _name(value: Any) -> str:
    if type(value) is int:
        return str(value)
    if not isinstance(value, str):
        raise PydanticCustomError("name", "must be a string or an integer")
    return _text(value)


def _whole(minimum: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        number = plain_number(value)
        if type(number) is not int or number < minimum:
            raise PydanticCustomError("whole", "must be an integer >= {minimum}", {"minimum": minimum})
        return number

    return check


def _amount(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < float("inf"):
        raise PydanticCustomError("amount", "must be a number >= 0")
    number: float = plain_number(value)
    return number


Boolean = Annotated[bool, Strict()]
"""True or False; 1 and 0 are invalid."""

Integer = Annotated[int, Strict()]
"""An integer; True is invalid."""

String = Annotated[str, PlainValidator(_string)]
"""A string that can be written as UTF-8."""

Text = Annotated[str, PlainValidator(_text)]
"""A `String` that is not blank."""

Name = Annotated[str, PlainValidator(_name)]
"""A `Text`; an integer is converted to a string."""

Count = Annotated[int, PlainValidator(_whole(1))]
"""An integer >= 1; True is invalid."""

Natural = Annotated[int, PlainValidator(_whole(0))]
"""An integer >= 0."""

# Integers stay integers, since amounts are stored in results files unchanged.
Amount = Annotated[float, PlainValidator(_amount)]
"""A finite number >= 0."""
