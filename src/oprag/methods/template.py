"""Prompts with fields in them. What goes into a field is data: braces in it mean nothing."""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter
from typing import Any, Protocol, runtime_checkable

from oprag.errors import PromptError
from oprag.methods.message import Message, as_text

__all__ = ["Template", "TextTemplate"]


@runtime_checkable
class Template(Protocol):
    """Anything that makes messages of values; adapters bring those of their frameworks."""

    @property
    def fields(self) -> frozenset[str]:
        """The names of the values that it needs."""
        ...

    def messages(self, values: Mapping[str, Any]) -> tuple[Message, ...]:
        """The messages, with these values in the fields.

        Raises:
            PromptError: A value that is needed is missing.
        """
        ...


class TextTemplate:
    r"""A template of plain text, with fields in braces (`{{` and `}}` stand for braces).

    Args:
        user: The message of the user.
        system: The message of the system, if there is to be one.

    Raises:
        PromptError: A text is no string, or a field in it is more than a plain name.

    Example:
        >>> template = TextTemplate("{context}\n\nQ: {question}")
        >>> template.messages({"context": "A {brace}.", "question": "What?"})[0].content
        'A {brace}.\n\nQ: What?'
    """

    def __init__(self, user: str, system: str | None = None) -> None:
        self.user = user
        self.system = system
        self._user = _parsed(user)
        self._system = None if system is None else _parsed(system)
        self.fields = frozenset(name for _, name in [*self._user, *(self._system or [])] if name is not None)

    def messages(self, values: Mapping[str, Any]) -> tuple[Message, ...]:
        """The system message, if there is one, and the user's.

        Raises:
            PromptError: A value that is needed is missing.
        """
        user = Message("user", _filled(self._user, values))
        return (user,) if self._system is None else (Message("system", _filled(self._system, values)), user)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TextTemplate) and (self.user, self.system) == (other.user, other.system)

    def __hash__(self) -> int:
        return hash((self.user, self.system))

    def __repr__(self) -> str:
        return f"TextTemplate({self.user!r}, {self.system!r})"


_Parts = list[tuple[str, str | None]]


def _parsed(text: Any) -> _Parts:
    """The text as pairs of literal text and the field behind it."""
    if not isinstance(text, str):
        raise PromptError(f"a prompt must be a string or a prompt template, got {type(text).__name__}", text)
    parts: _Parts = []
    try:
        for literal, name, spec, conversion in Formatter().parse(text):
            # No attributes, indexes, widths or conversions: with them a template could read more than its values.
            if name is not None and (not name.isidentifier() or spec or conversion):
                raise PromptError(
                    f"a field of a prompt must be a plain name in braces, got {{{name}}} (write {{{{ for a brace)", text
                )
            parts.append((literal, name))
    except ValueError as error:
        if isinstance(error, PromptError):
            raise
        raise PromptError(f"a prompt has unbalanced braces (write {{{{ for a brace): {text!r}", text) from error
    return parts


def _filled(parts: _Parts, values: Mapping[str, Any]) -> str:
    """The text in one pass, so that nothing in a value is read as a field."""
    return "".join([literal if name is None else literal + _shown(name, values) for literal, name in parts])


def _shown(name: str, values: Mapping[str, Any]) -> str:
    try:
        value = values[name]
    except KeyError:
        known = ", ".join(sorted(values))
        raise PromptError(f"the prompt wants {{{name}}}, which has no value here; there are {known}", name) from None
    if isinstance(value, tuple) and all(isinstance(part, Message) for part in value):
        return as_text(value)
    return str(value)
