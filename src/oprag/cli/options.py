"""Command-line options for every field of `Assembly`, made from the dataclass."""

from __future__ import annotations

import importlib
import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import Annotated, Any

import typer

from oprag.assembly import Assembly
from oprag.errors import OptionError
from oprag.tokens import approximate_tokens

__all__ = ["AssemblyOptions", "assembly_options"]

_NUMBERS = ("k", "fetch_k", "token_budget", "seed")
_KEYS = ("source_key", "position_key")
_TEXTS = ("separator", "gap", "header")
_APPROXIMATE = "approximate"


@dataclass(frozen=True)
class AssemblyOptions:
    """The options as they were typed.

    Attributes:
        typed: The options by name, None where nothing was given and there is no default.
    """

    typed: dict[str, Any]

    def assembly(self) -> Assembly:
        """The options as an `Assembly`.

        Raises:
            OptionError: An option has a value that it cannot have.
        """
        return Assembly(**{name: _value(name, value) for name, value in self.typed.items() if value is not None})


def assembly_options(**defaults: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for every field of `Assembly`; they reach it as `options`.

    Args:
        **defaults: What this command puts in place of `Assembly`'s own defaults.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        names = [field.name for field in fields(Assembly)]

        @wraps(command)
        def run(**arguments: Any) -> None:
            typed = {name: arguments.pop(name) for name in names}
            command(options=AssemblyOptions(typed), **arguments)

        hints = typing.get_type_hints(command, include_extras=True)
        own = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name])
            for name, parameter in inspect.signature(command).parameters.items()
            if name != "options"
        ]
        generated = [
            _parameter(field.name, field.metadata["help"], defaults.get(field.name, field.default))
            for field in fields(Assembly)
        ]
        run.__signature__ = inspect.Signature([*own, *generated])  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in [*own, *generated]}
        return run

    return decorate


def _parameter(name: str, description: str, default: Any) -> inspect.Parameter:
    if name == "count_tokens":
        description += ' "local" is the tokenizer of the local embedder; or MODULE:FUNCTION.'
        default = _APPROXIMATE
    elif name in _KEYS:
        description += " Several have commas between them."
    elif name in _TEXTS:
        description += r" \n stands for a line break."
        default = default and default.replace("\n", r"\n")
    kind: Any = int if name in _NUMBERS else bool if name == "stitch" else str
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
        from oprag.cli.working import local_embedder

        return local_embedder().count_tokens
    module, _, name = typed.partition(":")
    try:
        counter = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise OptionError(
            f'count_tokens must be "approximate", "local" or MODULE:FUNCTION, got {typed!r} ({error})', typed
        ) from error
    return counter  # type: ignore[no-any-return]
