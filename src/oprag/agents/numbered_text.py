"""Text for a model: chunks under their numbers, and pointers to the numbers whose text the model already sees."""

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from oprag._internal.masking import shown
from oprag._internal.text_table import one_line, printable, safe, shortened
from oprag._internal.tokens import count
from oprag.chunk import Chunk, Passage, counted
from oprag.options import ContextOptions
from oprag.pipeline.render import header_of, section_of, without_markers
from oprag.pipeline.stitch import STRIPPED, added_texts, each_alone, place_in_source
from oprag.positions.readings import is_exact, page_of

__all__ = [
    "GAP",
    "NOTHING",
    "Part",
    "VisibleText",
    "Written",
    "clean_note",
    "head_of",
    "joined",
    "omitted",
    "passage_of",
    "pointer",
    "section_and_page",
    "source_label",
    "write",
    "write_result",
]

BETWEEN = "\n\n"
GAP = "[…]"
"""The line in a file between passages that do not touch; document text cannot contain it."""
NOTHING = "Nothing was found."
_SHOWN = "(already shown)"
_MAX_LABEL_LENGTH = 200  # characters
_MAX_NOTE_LENGTH = 500  # characters
# Characters; the tools of Deep Agents cut off what a longer line has after 80,000.
_MAX_LINE_LENGTH = 20_000
_LONG_LINE = re.compile(rf"([^\n]{{{_MAX_LINE_LENGTH}}})(?=[^\n])")


class VisibleText:
    """The text that a model sees."""

    def __init__(self) -> None:
        self._shown: set[int] = set()
        # The visible chunks of each source and page, as (start, end, number, text), without those inside others: sorted
        # by start, they are sorted by end as well.
        self._outer: dict[Any, list[Any]] = {}

    def copy(self) -> "VisibleText":
        """A copy that can be changed independently."""
        copy = VisibleText()
        copy._shown = self._shown.copy()
        copy._outer = {frame: chunks.copy() for frame, chunks in self._outer.items()}
        return copy

    def showing(self, number: int, chunk: Chunk) -> int:
        """The number that has the text of a chunk, possibly inside a longer text; 0 if it is not visible."""
        if number in self._shown:
            return number
        place = chunk.span
        outer = None if place is None else self._outer.get((chunk.source, place.page))
        if place is None or not outer:
            return 0
        # Of the chunks that start before it, the last one ends last.
        start, end, by, text = outer[max(0, bisect_left(outer, (place.start + 1,)) - 1)]
        inside = start <= place.start and place.end <= end and text.startswith(chunk.text, place.start - start)
        return by if inside else 0

    def lacks(self, number: int, chunk: Chunk) -> bool:
        """Whether a chunk has text that is not visible."""
        return not (self.showing(number, chunk) or _is_blank(chunk.text))

    def show(self, shown: Iterable[int], placed: Sequence[Chunk]) -> None:
        """Add the numbers that a result shows."""
        for number in shown:
            self._shown.add(number)
            chunk = placed[number - 1]
            span = chunk.span
            if span is None or chunk.source is None or not is_exact(chunk, span):
                continue
            start, end, page = span
            outer = self._outer.setdefault((chunk.source, page), [])
            at = bisect_left(outer, (start + 1,))
            if at and outer[at - 1][1] >= end:
                continue
            first = at - 1 if at and outer[at - 1][0] == start else at
            while at < len(outer) and outer[at][1] <= end:
                at += 1
            outer[first:at] = [(start, end, number, chunk.text)]


class Part(NamedTuple):
    """A part of a result, which may contain markers."""

    text: str  # of a chunk, or a line such as pointers or a note
    number: int = 0  # of the chunk; 0 for a line
    head: str = ""  # the source of the chunk and its place


class Written(NamedTuple):
    """The text of chunks, and what is in it."""

    text: str
    parts: list[Part]
    shown: list[int]  # the numbers that have text in it, in order
    over_budget: Sequence[int] = ()  # the numbers that do not fit the token budget
    tokens: int = 0  # in the text; 0 if they were not counted

    def with_lines(self, *lines: str, first: str = "") -> "Written":
        """The same text with lines after it, and one before it."""
        before, after = ([Part(line) for line in its if line] for its in ([first], lines))
        return self._replace(text=joined(first, self.text, *lines), parts=[*before, *self.parts, *after])


def write_result(
    found: Mapping[int, Chunk],  # with their places, by number, in the order of the text
    ranks: Mapping[int, int],  # of these numbers in the search
    head: Callable[[int, Chunk], str],  # as for `write`
    visible: VisibleText,
    options: ContextOptions,
    *,
    room: int | None,  # maximum number of tokens; a result with only pointers and notes may have a few more
    note: str,
) -> Written:
    """Write the result of a search."""

    def text_of(numbers: Iterable[int]) -> Written:
        return write([(number, found[number]) for number in numbers], visible, head)

    def counted_tokens(written: Written, *lines: str, over_budget: Sequence[int] = ()) -> Written:
        written = written.with_lines(*lines)
        return written._replace(over_budget=over_budget, tokens=count(written.text, options.count_tokens))

    written = text_of(found)
    result = counted_tokens(written, "" if written.text else NOTHING, note)
    if room is None or result.tokens <= room or not result.shown:
        return result
    new = sorted((number for number, chunk in found.items() if visible.lacks(number, chunk)), key=ranks.__getitem__)
    kept: list[int] = []
    left = room
    for number in new:
        if (charge := count(text_of([number]).text, options.count_tokens)) <= left:
            left -= charge
            kept.append(number)
    if len(kept) == len(new):
        kept.pop()
    while True:
        over_budget = dict.fromkeys(number for number in new if number not in set(kept))
        written = text_of(number for number in found if number not in over_budget)
        # Without the note, which describes all chunks.
        result = counted_tokens(written, omitted(len(over_budget)), over_budget=list(over_budget))
        if result.tokens <= room or not kept:
            return result
        # Dropping chunks one by one would take quadratic time if their separate counts are far too low.
        del kept[-max(1, int(len(kept) * (1 - room / result.tokens) / 2)) :]


def write(
    found: Sequence[tuple[int, Chunk]],  # the chunks with their places
    visible: VisibleText,  # is not written again
    head: Callable[[int, Chunk], str],  # the text after a number, such as the source; written where it changes
    *,
    pointers: bool = True,  # whether to write pointers to visible text
    gaps: Collection[int] | None = None,  # for a file with headings: the numbers that do not follow the one before
    last_head: str = "",  # of the text before
) -> Written:
    """Write chunks under their numbers, in the given order; texts that touch or overlap are joined."""
    new = [(number, chunk) for number, chunk in found if visible.lacks(number, chunk)]
    added = zip(new, added_texts(chunk for _, chunk in new), strict=True)
    texts = {number: text for (number, _), text in added if not _is_blank(text)}
    written: list[str] = []
    parts: list[Part] = []
    waiting: dict[int, None] = {}
    before: Chunk | None = None
    clean, gap = without_markers if gaps is None else _in_file, False
    for number, chunk in found:
        gap = gap or (gaps is not None and number in gaps)
        if number not in texts:
            if pointers and (shown_by := visible.showing(number, chunk)):
                waiting[shown_by] = None
            continue
        if waiting:
            written += [BETWEEN, pointer(waiting)]
            parts.append(Part(pointer(waiting)))
            waiting, before = {}, None
        own_head = head(number, chunk)
        headed = own_head not in {"", last_head}
        heading = "## " if headed and gaps is not None else ""
        goes_on = before is not None and not (gap or heading) and _goes_on(before, chunk)
        written += [
            f"{BETWEEN}{GAP}{BETWEEN}" if gap else "\n" if goes_on else BETWEEN,
            # Together, because a marker could start in the head and end in the text.
            f"{heading}[{number}] ",
            clean(f"{own_head}\n{texts[number]}" if headed else texts[number]),
        ]
        parts.append(Part(texts[number], number, own_head))
        before, last_head, gap = chunk, own_head, False
    if waiting:
        written += [BETWEEN, pointer(waiting)]
        parts.append(Part(pointer(waiting)))
    return Written("".join(written[1:]), parts, list(texts))


def _is_blank(text: str) -> bool:
    return not text or text.isspace()


def _in_file(text: str) -> str:
    """Text of a document without what the structure of a file is made of, in lines that every tool counts equally."""
    text = safe(without_markers("\n".join(text.splitlines())).replace(GAP, "[ … ]"))
    return _LONG_LINE.sub(r"\1\n", text)


def _goes_on(first: Chunk, second: Chunk) -> bool:
    """Whether a chunk follows another directly, ignoring whitespace that a splitter strips."""
    place, its = place_in_source(first), place_in_source(second)
    if place is None or its is None or not place.start <= its.start <= place.end + STRIPPED:
        return False
    return (first.source, place.page) == (second.source, its.page)


def pointer(numbers: Iterable[int], where: str = _SHOWN) -> str:
    """A line that points to text elsewhere, such as "[3] (already shown)"."""
    return f"{', '.join(f'[{number}]' for number in numbers)} {where}"


def omitted(number: int) -> str:
    """A line about chunks that do not fit the token budget."""
    return f"({counted(number, 'passage')} omitted: token budget exhausted)"


def joined(*texts: str) -> str:
    """The parts of a result that are not empty, with blank lines between them."""
    return BETWEEN.join(filter(None, texts))


def clean_note(note: str) -> str:
    """Put a note on one line, in parentheses, without citation markers."""
    note = printable(one_line(without_markers(note[: 2 * _MAX_NOTE_LENGTH])))
    return shortened(note if note.startswith("(") or not note else f"({note})", _MAX_NOTE_LENGTH)


def head_of(options: ContextOptions, number: int, chunk: Chunk) -> str:
    """The text after the number of a chunk, on one line: its source and page, or the header of the options."""
    if options.header is None:
        page = page_of(chunk)
        return _source_and_page(chunk.source or "", "" if page is None else str(page))
    return _one_label(header_of(passage_of(chunk), options.header, number))


def section_and_page(chunk: Chunk) -> str:
    """The section and page of a chunk, for a heading; empty if both are unknown."""
    page = page_of(chunk)
    return _one_label(", ".join(filter(None, [section_of(chunk), "" if page is None else f"page {page}"])))


def source_label(source: str) -> str:
    """The name of a source on one line, masked, without text that could be read as the number of a passage."""
    return without_markers(printable(one_line(shown(source, _MAX_LABEL_LENGTH))))


def passage_of(chunk: Chunk) -> Passage:
    """The passage of one chunk."""
    (passage,) = each_alone([chunk])
    return passage


@lru_cache(maxsize=256)
def _source_and_page(source: str, page: str) -> str:
    label = f", page {shown(page, _MAX_LABEL_LENGTH)}" if page else ""
    return _one_label(shown(source, _MAX_LABEL_LENGTH) + label)


def _one_label(text: str) -> str:
    return shortened(printable(one_line(text[: 2 * _MAX_LABEL_LENGTH])), _MAX_LABEL_LENGTH)
