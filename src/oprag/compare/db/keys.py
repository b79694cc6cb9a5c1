"""Keys derived from content, identical for identical work in every process."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from oprag.methods.model_calls import Prompt

__all__ = ["JUDGED", "document_key", "key_of", "prompt_key"]

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


def document_key(text: Any) -> str:
    """Key of a document's text or pages."""
    return key_of("document", text if isinstance(text, str) else list(text))
