"""Counting tokens with whatever counter the caller has."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real

from oprag.errors import TokenizerError
from oprag.masking import describe

__all__ = ["TokenCounter", "approximate_tokens", "count"]

TokenCounter = Callable[[str], int]

_BYTES_PER_TOKEN = 4


def approximate_tokens(text: str) -> int:
    """About how many tokens a text has: its UTF-8 bytes divided by 4, rounded up.

    No model counts like this. It is near enough for English prose and needs nothing installed; pass your model's own
    counter as `count_tokens` where a budget must hold exactly.

    Args:
        text: The text.
    """
    # Most texts that are counted are long and plain, and Python knows without a look at them that they are.
    length = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-length // _BYTES_PER_TOKEN)


def count(text: str, count_tokens: TokenCounter) -> int:
    """The caller's count of a text, checked."""
    tokens = count_tokens(text)
    if type(tokens) is int and tokens >= 0:
        return tokens
    if isinstance(tokens, Real) and not isinstance(tokens, bool) and math.isfinite(tokens) and tokens >= 0:
        return math.ceil(tokens)
    raise TokenizerError(f"count_tokens must give a number of tokens from 0, got {describe(tokens)}", tokens)
