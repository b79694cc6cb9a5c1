"""From a marker in an answer to the passage that it names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from oprag.chunk import Span
from oprag.stitch import Passage

__all__ = ["Citation", "citations_in", "renumbered"]

# [1], and [1, 3] or [1; 3], which models write unasked.
_MARKER = re.compile(r"\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]")


class Citation(NamedTuple):
    """One number of a marker in an answer.

    Attributes:
        number: The number, as it stands in the marker.
        start: Where the marker begins in the answer.
        end: Where it ends.
        passage: The passage that had this number in the prompt.
        source: Its source.
        page: Its page, where that is known.
        span: Where it stands in the source, from its first to its last character; None where that is not known.
    """

    number: int
    start: int
    end: int
    passage: Passage
    source: str | None
    page: str | int | None
    span: Span | None


def citations_in(text: str, passages: Sequence[Passage]) -> tuple[Citation, ...]:
    """The markers in a text that lead to one of these passages; [1] is the first. Other numbers lead nowhere."""
    return tuple(
        _citation(int(number), marker, passages[int(number) - 1])
        for marker in _MARKER.finditer(text)
        for number in re.findall(r"\d+", marker[1])
        if 1 <= int(number) <= len(passages)
    )


def renumbered(text: str, offset: int, most: int) -> str:
    """The text with the numbers of its markers raised, so that it can stand beside a text with passages of its own.

    A number that leads to no passage stays, but in other brackets: raised or not, it would lead to one of another text.

    Args:
        text: The text.
        offset: How many numbered passages stand before those of this text.
        most: How many passages this text has.
    """

    def raised(marker: re.Match[str]) -> str:
        numbers = [int(number) for number in re.findall(r"\d+", marker[0])]
        if not all(1 <= number <= most for number in numbers):
            return f"({marker[1]})"
        return f"[{', '.join(str(number + offset) for number in numbers)}]"

    return _MARKER.sub(raised, text)


def _citation(number: int, marker: re.Match[str], passage: Passage) -> Citation:
    spans = passage.spans
    same_page = bool(spans) and spans[0].page == spans[-1].page
    return Citation(
        number,
        marker.start(),
        marker.end(),
        passage,
        passage.source,
        spans[0].page if spans else None,
        Span(spans[0].start, spans[-1].end, spans[0].page) if same_page else None,
    )
