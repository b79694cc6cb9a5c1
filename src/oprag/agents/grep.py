"""Find literal text or a regular expression in the text of a source, in bounded time."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

from oprag.errors import MissingExtraError, OptionError
from oprag.options import check_text

__all__ = ["TIME_LIMIT", "Pattern"]

TIME_LIMIT = 1.0
"""Maximum number of seconds that one pattern searches."""

_MAX_LENGTH = 1_000  # characters of a pattern
# Maximum length of a pattern times its minimum counts, such as {9}: regex unrolls these, which takes time and memory.
_MAX_SIZE = 20_000
# Characters that are searched at once, between two looks at the clock, and those after them that a match may extend to.
_WINDOW, _LONGEST = 20_000, 2_000
_COUNTS = re.compile(r"\{(\d+)")
# An escaped character, or a literal brace, which the package regex would read as approximate matching.
_BRACE = re.compile(r"\\.|\{(?!\d*,?\d*\})", re.DOTALL)

_Search = Callable[[str, int, int, float], Any]
"""Returns the first match in a part of a text, given a number of seconds."""


class Pattern:
    """Literal text, in which white space matches any white space, or a regular expression.

    A regular expression has the syntax of Python's `re`, and "^" and "$" match at line breaks. Python cannot interrupt
    `re`, so the package regex searches, which has a time limit. It takes the syntax of `re` alone, because recursion
    takes memory without limit.
    The time limit, in seconds, is for all texts together.
    """

    def __init__(
        self, pattern: str, *, regex: bool = False, ignore_case: bool = False, seconds: float = TIME_LIMIT
    ) -> None:
        check_text("pattern", pattern)
        if not pattern.strip():
            raise OptionError("the pattern is empty", pattern)
        if len(pattern) > _MAX_LENGTH:
            raise OptionError(f"the pattern has {len(pattern):,} characters; at most {_MAX_LENGTH:,} are allowed", None)
        flags = re.MULTILINE | re.IGNORECASE if ignore_case else re.MULTILINE
        self._search = _regular(pattern, flags) if regex else _literal(pattern, flags)
        self._left = seconds

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the start and end of each match in a text; raise TimeoutError when time is up."""
        until = time.monotonic() + self._left
        at = 0
        while at < len(text):
            if (left := until - time.monotonic()) <= 0:
                raise TimeoutError
            stop = at + _WINDOW
            found = self._search(text, at, stop + _LONGEST, left)
            if found is None or found.start() >= stop:
                at = stop
                continue
            if found.start() == found.end():
                raise OptionError("the pattern matches the empty string; search for something", None)
            yield found.span()
            at = found.end()
        self._left = until - time.monotonic()


def _literal(text: str, flags: int) -> _Search:
    # Possessive, so that nothing is tried twice.
    compiled = re.compile(r"\s++".join(map(re.escape, text.split())), flags)
    return lambda text, start, end, _: compiled.search(text, start, end)


def _regular(pattern: str, flags: int) -> _Search:
    try:
        import regex
    except ImportError as error:
        raise MissingExtraError("a regular expression", "regex", "pip install regex") from error
    if len(pattern) * math.prod(int(count) or 1 for count in _COUNTS.findall(pattern)) > _MAX_SIZE:
        raise OptionError("the regular expression is too large; use fewer or smaller counts, such as {1,9}", None)
    try:
        re.compile(pattern, flags)
        # Not cached: a cache of large expressions would take much memory.
        compiled = regex.compile(_BRACE.sub(_as_literal, pattern), flags, cache_pattern=False)
    except (re.error, regex.error, OverflowError, RecursionError, FutureWarning) as error:
        why = "too many parentheses" if isinstance(error, RecursionError) else error
        raise OptionError(f"the regular expression is invalid: {why}", None) from error
    return lambda text, start, end, left: compiled.search(text, start, end, timeout=left)


def _as_literal(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith("\\") else r"\{"
