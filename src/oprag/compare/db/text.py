"""Text in storable form, and error messages."""

from __future__ import annotations

from typing import TypeVar

from oprag._internal.masking import error_text, without_keys

__all__ = ["error_message", "error_name", "named_error", "safe_text", "storable"]

Value = TypeVar("Value")


def storable(value: Value) -> Value:
    """Replace unpaired surrogates in a text by U+FFFD, since UTF-8, and therefore SQLite, cannot encode them."""
    if not isinstance(value, str):
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        # Encoding as UTF-16 turns two surrogates that form a pair into their character.
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")  # type: ignore[return-value]
    return value


def safe_text(text: str) -> str:
    """Text in storable form, with secrets masked."""
    return without_keys(storable(text))


def error_message(error: BaseException | str | None, max_length: int | None = None) -> str:
    """Message of an error on one line, in storable form, with secrets masked."""
    return " ".join(storable(error_text(error)).split())[:max_length]


def error_name(error: BaseException | None) -> str:
    """Class of an error; for an error raised in another process, its class there."""
    return str(getattr(error, "remote_class", type(error).__name__))


def named_error(error: BaseException | None, max_length: int | None = None) -> str:
    """Class and message of an error."""
    return f"{error_name(error)}: {error_message(error, max_length)}"
