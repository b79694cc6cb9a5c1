"""Text that a results file can hold, and the messages of errors."""

from __future__ import annotations

from typing import TypeVar

from oprag.masking import error_text, without_keys

__all__ = ["error_message", "error_name", "named_error", "safe_text", "storable"]

Value = TypeVar("Value")


def storable(value: Value) -> Value:
    """Replace halves of surrogate pairs in a text, which UTF-8 and so SQLite cannot hold, by U+FFFD."""
    if not isinstance(value, str):
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        # Through UTF-16, so that two halves that belong together become their character.
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")  # type: ignore[return-value]
    return value


def safe_text(text: str) -> str:
    """A text that a file can hold, with secrets masked."""
    return without_keys(storable(text))


def error_message(error: BaseException | str | None, most: int | None = None) -> str:
    """The message of an error on one line, as a file can hold it, with secrets masked."""
    return " ".join(storable(error_text(error)).split())[:most]


def error_name(error: BaseException | None) -> str:
    """The class of an error; for an error of another process, its class there."""
    return str(getattr(error, "remote_class", type(error).__name__))


def named_error(error: BaseException | None, most: int | None = None) -> str:
    """The class of an error and its message."""
    return f"{error_name(error)}: {error_message(error, most)}"
