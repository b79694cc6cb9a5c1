"""What the swap has to do to a quick start, checked against the text of the documents."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter

from oprag.errors import OpragWarning

__all__ = ["BY_STORE", "NO_SOURCE", "Found", "check_prompt", "check_swap", "in_order", "warns_only"]

BY_STORE = "in the order in which they were added to the store"
NO_SOURCE = "do not name their source"

Found = Sequence[tuple[str, str]]
"""The source and the text of each chunk, in the sequence in which they were returned."""


def check_swap(before: Sequence[Found], after: Sequence[Found], texts: Mapping[str, str]) -> None:
    """After the swap each question has the same chunks, in the order of the documents."""
    assert [Counter(found) for found in after] == [Counter(found) for found in before]
    assert all(in_order(found, texts) for found in after)
    assert not all(in_order(found, texts) for found in before)


def in_order(found: Found, texts: Mapping[str, str]) -> bool:
    """Whether the chunks of each document are together, and follow each other in its text."""
    groups = [(source, [text for _, text in chunks]) for source, chunks in groupby(found, key=itemgetter(0))]
    return len(groups) == len(dict(groups)) and all(_follow(chunks, texts[source]) for source, chunks in groups)


def check_prompt(prompt: str, found: Found) -> None:
    """A model reads these chunks, in this sequence."""
    assert found
    assert _follow([text for _, text in found], prompt)


def _follow(pieces: Sequence[str], text: str) -> bool:
    """Whether each piece is in the text after the start of the one before it; runs of white space are equal."""
    whole, at = _plain(text), -1
    for piece in pieces:
        at = whole.find(_plain(piece), at + 1)
        if at < 0:
            return False
    return True


def _plain(text: str) -> str:
    return " ".join(text.split())


@contextmanager
def warns_only(*promised: str) -> Iterator[list[str]]:
    """Collects warnings, of which each is one that the documentation promises here."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OpragWarning)
        yield messages
    messages += [str(warning.message) for warning in caught if issubclass(warning.category, OpragWarning)]
    assert [message for message in messages if not any(words in message for words in promised)] == []
