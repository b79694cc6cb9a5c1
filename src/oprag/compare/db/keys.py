"""Keys made of content, the same for the same work in every process, and digests that detect changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from oprag.masking import describe
from oprag.methods.model_calls import Prompt

__all__ = ["answer_digest", "document_key", "key_of", "prompt_key", "reply_digest"]

# To be raised when the same cell would be answered in another way, so that old answers are not reused.
_FORMAT = 1
_LENGTH = 16  # bytes of a key


def key_of(kind: str, *parts: Any) -> str:
    """The key of a piece of work, from everything that its result depends on, as 32 hexadecimal digits."""
    # Not as ASCII: its escapes would make two halves of a surrogate pair equal to their character.
    text = json.dumps([_FORMAT, kind, *parts], ensure_ascii=False, sort_keys=True, default=_plain)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[: 2 * _LENGTH]


def prompt_key(model: str, prompt: Prompt, repeat: int) -> str:
    """The key of a model's reply, whatever the step; another repeat is another reply to the same prompt."""
    found = hashlib.sha256(f"{_FORMAT}\0{repeat}\0{model}\0".encode("utf-8", "surrogatepass"))
    for message in prompt.messages:
        content = message.content.encode("utf-8", "surrogatepass")
        # With its length, so that no border can be moved.
        found.update(f"{message.role}\0{len(content)}\0".encode())
        found.update(content)
    return found.hexdigest()[: 2 * _LENGTH]


def document_key(text: Any) -> str:
    """The key of the text of a document, or of its pages."""
    return key_of("document", text if isinstance(text, str) else list(text))


def reply_digest(key: str, text: str, *others: float | str | None) -> str:
    """The digest of a reply: its key, its text, its tokens and its finish reason."""
    return _digest(key, text, *others)


def answer_digest(values: Iterable[Any], replies: Iterable[str], scores: Iterable[Sequence[Any]]) -> str:
    """The digest of an answer: its columns, the keys of the replies that it is made of, and its scores."""
    return _digest(*values, "calls", *replies, "scores", *chain.from_iterable(scores))


def _digest(*values: str | float | None) -> str:
    """A digest, which differs if a value was changed after it was written."""
    # Strings with their length, so that no border can be moved.
    parts = [f"{len(value)} {value}" if isinstance(value, str) else repr(value) for value in values]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[: 2 * _LENGTH]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{describe(value)} has no key")
