"""Join the chunks of a source to its text, in which overlaps occur once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from oprag.chunk import Chunk
from oprag.pipeline.stitch import place_in_source
from oprag.positions.overlaps import overlap_of
from oprag.positions.readings import is_exact

__all__ = ["JoinedText", "join_chunks"]

_MAX_LINES = 4  # short lines that a splitter repeats


class JoinedText(NamedTuple):
    """The text of a source, made of its chunks.

    Attributes:
        text: Each character once, if overlaps are known.
        added: For each chunk, the offset of the first character that no chunk before it contains.
        visible: For each chunk, the offset of its first character that is not white space.
    """

    text: str
    added: list[int]
    visible: list[int]

    def row_at(self, offset: int) -> int:
        """The index of the first chunk that contains the character at an offset."""
        return bisect_right(self.added, offset) - 1

    def rows_of(self, start: int, end: int) -> range:
        """The indices of the chunks that contain a part of the text: one chunk if it contains the whole part."""
        first, last = self.row_at(start), self.row_at(end - 1)
        return range(last if self.visible[last] <= start else first, last + 1)


def join_chunks(chunks: Sequence[Chunk]) -> JoinedText:
    """Join ordered chunks; those that neither touch nor overlap are separated by line breaks."""
    parts: list[str] = []
    added: list[int] = []
    visible: list[int] = []
    # The end of the text so far, and where the chunk that reaches it begins.
    end, begin, last = 0, 0, chunks[0]
    for chunk in chunks:
        text = chunk.text
        at = _begin(last, chunk) if added else 0
        if at is None or at > len(last.text):
            # One stripped character was a line break or a space; more of them contained a blank line.
            gap = "\n" if at == len(last.text) + 1 else "\n\n"
            parts.append(gap)
            end += len(gap)
            at = end - begin
        start = begin + at
        added.append(end)
        visible.append(start + len(text) - len(text.lstrip()))
        if start + len(text) >= end:
            parts.append(text[end - start :])
            end, begin, last = start + len(text), start, chunk
    return JoinedText("".join(parts), added, visible)


def _begin(last: Chunk, chunk: Chunk) -> int | None:
    """Where a chunk begins, counted from the start of the last one, by its offset or by its text; None if unknown."""
    mine, its = place_in_source(last), place_in_source(chunk)
    if mine and its and mine.page == its.page and is_exact(last, mine) and is_exact(chunk, its):
        at = its.start - mine.start
        if at >= 0 and chunk.text.startswith(last.text[at : at + len(chunk.text)]):
            return at
    length = _repeated(last.text, chunk.text)
    return len(last.text) - length if length else None


def _repeated(before: str, after: str) -> int:
    """The number of characters at the end of a text that the next one repeats: an overlap, or a few short lines."""
    # Splitters do not repeat a whole chunk.
    if before == after:
        return 0
    if length := overlap_of(before, after):
        return length
    lines = before.splitlines(keepends=True)[-_MAX_LINES:]
    for first in range(len(lines)):
        repeated = "".join(lines[first:])
        # A fence alone may end a code block, while the next text begins one.
        marked = repeated.strip("`~ \r\n\t")
        if marked and f"{after}\n".startswith(repeated if repeated.endswith("\n") else f"{repeated}\n"):
            return len(repeated)
    return 0
