"""Command-line options for every field of a dataclass of options, made from the dataclass."""

from __future__ import annotations

import importlib
import inspect
import typing
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from functools import wraps
from types import UnionType
from typing import Annotated, Any

import typer

from oprag.errors import OptionError
from oprag.masking import describe
from oprag.tokens import approximate_tokens

__all__ = ["TypedOptions", "typed_options"]

_KEYS = ("source_key", "position_key")
_TEXTS = ("separator", "gap", "header")
_APPROXIMATE = "approximate"
# It knows what was typed; Typer gives it to one parameter of a command.
_CONTEXT = inspect.Parameter("typer_context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)


@dataclass(frozen=True)
class TypedOptions:
    """Options as they were typed.

    Attributes:
        kind: The dataclass that they belong to.
        typed: The options by name, None where nothing was given and there is no default.
        given: The names of those that really were typed, and are no defaults of the command.
    """

    kind: type
    typed: Mapping[str, Any]
    given: frozenset[str] = frozenset()

    def keywords(self, profile: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The options as keywords.

        Args:
            profile: Options that stand where nothing was typed.

        Raises:
            OptionError: There is no such token counter.
        """
        said = {name: value for name, value in (profile or {}).items() if name not in self.given}
        typed = {name: value for name, value in self.typed.items() if value is not None and name not in said}
        return {name: _value(name, value) for name, value in typed.items()} | said

    def value(self, profile: Mapping[str, Any] | None = None, **defaults: Any) -> Any:
        """The options as an object of their dataclass.

        Args:
            profile: Options that stand where nothing was typed.
            **defaults: What stands where neither says anything.

        Raises:
            OptionError: An option has a value that it cannot have.
        """
        return self.kind(**{**defaults, **self.keywords(profile)})


def typed_options(
    name: str, kind: Any, *, defaults: Mapping[str, Any] | None = None, without: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for every field of a dataclass.

    Args:
        name: The parameter under which they reach the command, as `TypedOptions`.
        kind: The dataclass; each field has a description in its metadata.
        defaults: What this command puts in place of the dataclass's own defaults.
        without: Fields that it has no option for.
    """
    changed = defaults or {}
    hints = typing.get_type_hints(kind)
    generated = [
        _parameter(field.name, hints[field.name], field.metadata["help"], changed.get(field.name, field.default))
        for field in fields(kind)
        if field.name not in without
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        known = inspect.signature(command).parameters
        context = [] if _CONTEXT.name in known else [_CONTEXT]

        @wraps(command)
        def run(**arguments: Any) -> None:
            source = arguments[_CONTEXT.name].get_parameter_source
            for parameter in context:
                del arguments[parameter.name]
            typed = {parameter.name: arguments.pop(parameter.name) for parameter in generated}
            given = frozenset(name for name in typed if source(name).name == "COMMANDLINE")
            command(**{name: TypedOptions(kind, typed, given)}, **arguments)

        annotations = typing.get_type_hints(command, include_extras=True)
        own = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=annotations[parameter.name])
            for parameter in known.values()
            if parameter.name != name
        ]
        run.__signature__ = inspect.Signature([*own, *context, *generated])  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in [*own, *context, *generated]}
        return run

    return decorate


def _parameter(name: str, hint: Any, description: str, default: Any) -> inspect.Parameter:
    if name == "count_tokens":
        description += ' "local" is the tokenizer of the local embedder; or MODULE:FUNCTION.'
        default = _APPROXIMATE
    elif name in _KEYS:
        description += " Several have commas between them."
    elif name in _TEXTS:
        description += r" \n stands for a line break."
        default = default and default.replace("\n", r"\n")
    possible = typing.get_args(hint) if isinstance(hint, UnionType) else (hint,)
    kind: Any = next((kind for kind in (bool, int, float) if kind in possible), str)
    annotation = Annotated[kind | None, typer.Option(help=description)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _value(name: str, typed: Any) -> Any:
    """What was typed, as the value of the option."""
    if name == "count_tokens":
        return _counter(typed)
    if name in _KEYS and "," in typed:
        return tuple(part.strip() for part in typed.split(","))
    if name in _TEXTS:
        return typed.replace(r"\n", "\n").replace(r"\t", "\t")
    return typed


def _counter(typed: str) -> Callable[[str], int]:
    if typed == _APPROXIMATE:
        return approximate_tokens
    if typed == "local":
        from oprag.embedding.static import local_embedder

        return local_embedder().count_tokens
    module, _, name = typed.partition(":")
    try:
        counter = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise OptionError(
            f'count_tokens must be "approximate", "local" or MODULE:FUNCTION, got {describe(typed)} ({error})', typed
        ) from error
    return counter  # type: ignore[no-any-return]
