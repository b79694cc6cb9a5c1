"""The words of an answer that are compared: normalization as in SQuAD."""

from __future__ import annotations

import re
import string

__all__ = ["normalized_words"]

_PUNCTUATION = dict.fromkeys(map(ord, string.punctuation))
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def normalized_words(text: str) -> list[str]:
    """The words that are left without capitals, punctuation and articles.

    The rule of SQuAD's evaluation (Rajpurkar et al. 2016, arXiv 1606.05250), which ∞Bench has taken over word for
    word: lower case, then ASCII punctuation deleted, then the English articles, then split at white space. So
    "well-known" is the one word "wellknown", "A.N." is the article "an" and goes, while curly quotes and dashes stay.

    Example:
        >>> normalized_words("The  cat's A-team, an old one.")
        ['cats', 'ateam', 'old', 'one']
    """
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()
