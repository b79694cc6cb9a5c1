"""Quotes in an answer, and whether a passage contains them."""

from __future__ import annotations

import re
import unicodedata

from oprag.pipeline.render import without_markers

__all__ = ["is_quoted", "normal", "quote_before"]

# Closing quotation marks, and those that open a quote that they close.
_OPENING = {
    '"': '"',
    "”": "“„”",
    "“": "„",
    "»": "«»",
    "«": "»",
    "›": "‹›",
    "‹": "›",
    "’": "‘‚",
    "‘": "‚",
    "」": "「",
    "』": "『",
}
_ALIKE = str.maketrans(dict.fromkeys("".join([*_OPENING, *_OPENING.values(), "‛‟′″"]), "'"))
_LEFT_OUT = re.compile(r"\[\s?(?:…|\.{3})\s?\]|\(\s?(?:…|\.{3})\s?\)|…|\.{3,}|\. \. \.")
# Between a quote and its marker: punctuation, a parenthesis, and the emphasis of Markdown.
_BETWEEN = ".,;:!?(*_"
_MAX_LENGTH = 4_000  # characters of a quote


def quote_before(text: str, start: int, end: int) -> str | None:
    """The quote that ends right before a marker, without its quotation marks; None if no quote does.

    Args:
        text: The answer.
        start: Where the quote may start, which is the end of the marker before.
        end: Start of the marker.
    """
    before = text[max(start, end - _MAX_LENGTH) : end].rstrip().rstrip(_BETWEEN).rstrip()
    opening = _OPENING.get(before[-1:], "")
    at = len(before) - 1
    while opening:
        at = max(before.rfind(mark, 0, at) for mark in opening)
        if at < 0:
            return None
        # A mark that can also close a quote, or mean inches, opens one only at the start of a word.
        if before[at] != before[-1] or (not before[at - 1 : at].isalnum() and not before[at + 1].isspace()):
            quote = before[at + 1 : -1].strip()
            return quote if any(map(str.isalnum, quote)) else None
    return None


def normal(text: str) -> str:
    """A text as it is compared: all whitespace and all quotation marks are alike, as are equivalent Unicode forms."""
    return " ".join(unicodedata.normalize("NFC", without_markers(text)).translate(_ALIKE).split())


def is_quoted(quote: str, text: str) -> bool:
    """Whether a text, as returned by `normal`, contains a quote.

    The parts of a quote with ellipses are looked for one after another. A full stop or comma at the end of a quote may
    belong to the sentence around it.
    """
    *parts, last = (normal(part) for part in _LEFT_OUT.split(quote))
    place = 0
    for part in [*parts, last.rstrip(".,")]:
        found = text.find(part, place)
        if found < 0:
            return False
        place = found + len(part)
    return True
