"""Count tokens, with the caller's counter or an approximation."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real

from oprag._internal.masking import describe
from oprag.errors import TokenizerError

__all__ = ["TokenCounter", "approximate_tokens", "count", "whole_characters"]

TokenCounter = Callable[[str], int]

_BYTES_PER_TOKEN = 4


def approximate_tokens(text: str) -> int:
    """Approximate number of tokens: UTF-8 bytes divided by 4, rounded up.

    Close enough for English prose, without a tokenizer installed. If a budget must be exact, pass your model's own
    counter as `count_tokens`.

    Args:
        text: The text.
    """
    # Most texts are ASCII, for which isascii() is O(1) and the number of bytes is the length.
    length = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-length // _BYTES_PER_TOKEN)


def count(text: str, count_tokens: TokenCounter) -> int:
    """Count the tokens of a text, and validate the caller's result."""
    tokens = count_tokens(text)
    if type(tokens) is int and tokens >= 0:
        return tokens
    if isinstance(tokens, Real) and not isinstance(tokens, bool) and math.isfinite(tokens) and tokens >= 0:
        return math.ceil(tokens)
    raise TokenizerError(f"count_tokens must return a non-negative number, got {describe(tokens)}", tokens)


def whole_characters(text: str) -> str:
    """The text with "?" in place of lone surrogates, which tokenizers reject."""
    return text.encode("utf-8", "replace").decode("utf-8")
