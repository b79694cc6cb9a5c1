"""What a results file stores of things: keys derived from their content, texts without secrets, errors in words."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from oprag._internal.masking import error_text, without_keys
from oprag.methods.prompts import Prompt

__all__ = [
    "JUDGED",
    "error_message",
    "error_name",
    "key_of",
    "named_error",
    "prompt_key",
    "safe_text",
    "storable",
]

JUDGED = "metric:"
"""Prefix of the step of a judge's call; the name of the judge follows."""

# Increase when the same cell would be answered differently, so that old answers are not reused.
_FORMAT = 1
_LENGTH = 16  # bytes of a key


def key_of(kind: str, *parts: Any) -> str:
    """Key of a piece of work, derived from everything its result depends on, as 32 hexadecimal digits."""
    # ASCII escapes would make two surrogates equal to the character that they form as a pair.
    text = json.dumps([_FORMAT, kind, *parts], ensure_ascii=False, sort_keys=True, default=dict)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[: 2 * _LENGTH]


def prompt_key(model: str, prompt: Prompt, repeat: int) -> str:
    """Key of a model's reply, independent of the step; each repeat gets its own reply to the same prompt."""
    found = hashlib.sha256(f"{_FORMAT}\0{repeat}\0{model}\0".encode("utf-8", "surrogatepass"))
    for message in prompt.messages:
        content = message.content.encode("utf-8", "surrogatepass")
        # The length prevents collisions between messages with different boundaries.
        found.update(f"{message.role}\0{len(content)}\0".encode())
        found.update(content)
    return found.hexdigest()[: 2 * _LENGTH]


def storable(text: str) -> str:
    """Replace unpaired surrogates by U+FFFD, since UTF-8, and therefore SQLite, cannot encode them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        # Encoding as UTF-16 turns two surrogates that form a pair into their character.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


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
