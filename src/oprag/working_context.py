"""One ordered context for many searches of an agent: deduplicated, numbered, in the order of the sources."""

import itertools
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import Any, Literal, NamedTuple, Self, get_args

from oprag.assembly.order import in_order
from oprag.assembly.render import header_of
from oprag.assembly.select import without_missing
from oprag.assembly.stitch import Passage, place_in_source, repeated_part
from oprag.chunk import Chunk, Position, PositionKind, Span, changed, counted, sorted_by_rank
from oprag.context import Context, build_context
from oprag.errors import BudgetError, DataError, OpragError, OptionError
from oprag.masking import describe, masked_error, shown
from oprag.methods.answer import Citation, citation_of, markers_in, without_markers
from oprag.options import ContextOptions, as_context_options, check_choice, check_count, check_text, plain_number
from oprag.positions.fields import (
    NUMBERING_FIELD,
    PAGE_FIELDS,
    READ_FIELDS,
    SECONDS_FIELD,
    SOURCE_FIELDS,
    STAMPED_FIELDS,
    START_FIELDS,
)
from oprag.positions.placing import NO_STORE, place, warn_about
from oprag.positions.readings import is_exact, page_of
from oprag.positions.values import TOO_LARGE, finite, ordinal, whole
from oprag.text_table import one_line, printable, shortened
from oprag.tokens import count
from oprag.working_context_state import Gathered, Parts, Search, clean_note, from_plain, plain_span, to_plain

__all__ = ["SEARCH_OPTIONS", "Cited", "Delta", "Layout", "WorkingContext", "check_layout"]

Layout = Literal["delta", "compact"]

# Options of a search; a working context only combines the results of searches.
SEARCH_OPTIONS = (
    "k",
    "max_candidates",
    "continuity",
    "similarity_threshold",
    "redundancy_threshold",
    "min_chunks",
    "neighbors",
    "whole_source_tokens",
)
_MAX_LABEL_LENGTH = 200  # characters
_MAX_VALUE_LENGTH = 500  # characters of a metadata value
# If more chunks than `_FEW` overlap a new one, the same text was split in many ways. Then only the `_MANY` longest
# overlaps of at least `_SHORT` characters are used: a pointer is longer than a short overlap, and comparing all of them
# would take quadratic time.
_FEW, _MANY = 16, 128
_SHORT = 24  # characters
_STRIPPED = 4  # maximum number of whitespace characters that a splitter strips between two chunks
# Up to this number of chunks, tokens are recounted after each dropped chunk; above, several are dropped at once.
_RECOUNT_EACH_UP_TO = 256
_POSITION = "position"
_START = "start_index"
_KEPT_FIELDS = frozenset({*READ_FIELDS, *START_FIELDS.values(), NUMBERING_FIELD})
# Fields that distinguish chunks with the same text, and those among them that no two chunks share.
_PLACE_FIELDS = READ_FIELDS.difference(SOURCE_FIELDS)
_EXACT_FIELDS = frozenset({*STAMPED_FIELDS, *START_FIELDS, SECONDS_FIELD})
_NAMES_WITH_PLACES = frozenset({"source", "url"})
_SHOWN = "(already shown)"
_COMPACTED = "(shown in source order in the last search result)"
_NOTHING = "Nothing was found."
_BETWEEN = "\n\n"
_ALL = "Everything that was found so far:"
_ALL_IN_ORDER = "Everything that was found so far, in the order of the sources:"


@dataclass(frozen=True)
class Delta:
    """The result of adding a search to a working context.

    Attributes:
        text: The text for the model: new chunks with their numbers, and pointers instead of the others.
        numbers: The numbers of all chunks of the search, in the order of the text.
        new: The numbers of chunks with text shown in this result.
        repeated: The numbers of chunks whose text was shown before, or is only whitespace.
        over_budget: The numbers of chunks that do not fit the token budget.
        ranks: The number of each given chunk, by its rank in the search.
        tokens: Number of tokens in `text`.
    """

    text: str
    numbers: tuple[int, ...]
    new: tuple[int, ...]
    repeated: tuple[int, ...]
    over_budget: tuple[int, ...]
    ranks: Mapping[int, int] = field(repr=False)
    tokens: int


class Cited(NamedTuple):
    """The citations in an answer.

    Attributes:
        citations: One for each number in each marker, with its passage, source and span.
        unknown: Numbers in markers that no text for the model contained.
    """

    citations: tuple[Citation, ...]
    unknown: tuple[int, ...]


class _PlaceName(NamedTuple):
    """Identity of a chunk without an id: its text, and the metadata about its place."""

    source: str | None
    text: str
    offset: int | None
    facts: frozenset[Any]


class _Shown(NamedTuple):
    """The text of one search result.

    Attributes:
        parts: The parts of each number's text that it contains.
        elsewhere: For each other number, the numbers that show its text.
        over_budget: The numbers that do not fit the token budget.
    """

    text: str
    parts: dict[int, Parts]
    elsewhere: dict[int, list[int]]
    over_budget: frozenset[int]
    tokens: int


class _VisibleText:
    """The text that the model can see.

    Attributes:
        index: The index of the next search to show; places that later searches added are not used.
        parts: The shown parts of each number.
        visible: Cache, for some numbers, of the numbers that together show their whole text.
    """

    def __init__(self, index: int) -> None:
        self.index = index
        self.parts: dict[int, Parts] = {}
        self.visible: dict[int, list[int]] = {}
        # Shown parts of each frame as (start, end, number), sorted and without overlaps.
        self._sources: defaultdict[Any, list[tuple[int, int, int]]] = defaultdict(list)

    def show(self, gathered: Gathered, parts: Parts) -> None:
        """Mark parts of a chunk's text as shown."""
        number, where = gathered.number, gathered.place_at(self.index)
        self.parts[number] = [*self.parts[number], *parts] if number in self.parts else parts
        if parts[0][1] - parts[0][0] == len(gathered.chunk.text):
            self.visible[number] = [number]
        if where is None:
            return
        shown = self._sources[gathered.frame]
        for first, last in parts:
            start, end = where.start + first, where.start + last
            here = self._within(shown, start, end)
            if here.start == here.stop:
                shown.insert(here.start, (start, end, number))
                continue
            before = [(old_start, start, old) for old_start, _, old in shown[here] if old_start < start]
            after = [(end, old_end, old) for _, old_end, old in shown[here] if old_end > end]
            # Assign an overlap to the newest number, so that many small parts are replaced with one.
            shown[here] = [*before, (start, end, number), *after]

    def near(self, gathered: Gathered, where: Span) -> list[tuple[int, int, int]]:
        """The shown parts that overlap the chunk's place in its source."""
        shown = self._sources.get(gathered.frame)
        return [] if not shown else shown[self._within(shown, where.start, where.end)]

    @staticmethod
    def _within(shown: Sequence[tuple[int, int, int]], start: int, end: int) -> slice:
        first = bisect_left(shown, (start + 1,))
        if first and shown[first - 1][1] > start:
            first -= 1
        return slice(first, bisect_left(shown, (end,), first))


class WorkingContext:
    """The chunks that an agent gathers in many searches: deduplicated, numbered, in the order of the sources.

    Add the chunks of one search after another. Each `add` returns the text for the model: new text in source order, and
    pointers such as "[3] (already shown)" to text that was shown before. `context` returns all gathered chunks.

    - A chunk is gathered once, even if several searches find it, and its number never changes.
    - Its rank is its best rank in any search; ties go to the lower number.
    - No text is shown twice, and none is lost: if chunks overlap, the later one is shown without the overlap. Overlaps
      are determined from offsets and confirmed by the texts. Chunks of only whitespace are not shown.
    - A pointer refers only to text that the model can still see. Call `forget` when messages are removed.
    - `context` equals `build_context` for all gathered chunks.
    - Every `[1]` in the text is a number of this working context; in the text of documents, it is changed to `[ 1 ]`.
    - `from_dict(to_dict())` behaves like the original.

    Use one per conversation. It is not thread-safe.

    Args:
        options: The options of the context. `token_budget` is the maximum number of tokens of all shown text; once it
            is reached, a search result contains only pointers and a note, which add a few tokens each. `header` is
            written when it changes; `separator` and `gap` apply to `context()`. The options of a search (k,
            max_candidates, thresholds, min_chunks, neighbors) belong to the retriever.
        **changes: Options of `ContextOptions` to change, such as `token_budget=16_000`.

    Raises:
        OptionError: An option is unknown, invalid, or belongs to the search.

    Example:
        >>> working = WorkingContext()
        >>> first = working.add([Chunk("It ends.", 0, "book", {"start_index": 90}),
        ...                      Chunk("It begins.", 1, "book", {"start_index": 0})])
        >>> print(first.text)
        [1] book
        It begins.
        <BLANKLINE>
        [2] It ends.
        >>> second = working.add([Chunk("It ends.", 0, "book", {"start_index": 90}),
        ...                       Chunk("It goes on.", 1, "book", {"start_index": 40})])
        >>> print(second.text)
        [3] book
        It goes on.
        <BLANKLINE>
        [2] (already shown)
        >>> print(working.context().text)
        It begins.
        <BLANKLINE>
        It goes on.
        <BLANKLINE>
        It ends.
        >>> working.cited("The end [2], as told in [7].").unknown
        (7,)
    """

    def __init__(self, options: ContextOptions | None = None, **changes: Any) -> None:
        self._options = as_context_options(options, changes)
        default = ContextOptions()
        for name in SEARCH_OPTIONS:
            if (value := getattr(self._options, name)) != getattr(default, name):
                raise OptionError(
                    f"{name}={describe(value)} is an option of a search, not of a working context; set it on the "
                    "retriever",
                    value,
                )
        self._gathered: list[Gathered] = []
        self._searches: dict[str, Search] = {}
        # Cache: whether two overlapping chunks have the same text in the overlap.
        self._agreeing: dict[tuple[int, int], bool] = {}

    @property
    def options(self) -> ContextOptions:
        """The options."""
        return self._options

    @property
    def searches(self) -> tuple[str, ...]:
        """The names of the searches, in the order in which they were added."""
        return tuple(self._searches)

    @property
    def tokens(self) -> int:
        """Number of tokens of all deltas that the model can see."""
        return sum(search.tokens for search in self._searches.values() if not search.forgotten)

    def __len__(self) -> int:
        return len(self._gathered)

    def __repr__(self) -> str:
        searches = f"{len(self._searches):,} search{'' if len(self._searches) == 1 else 'es'}"
        return f"WorkingContext({counted(len(self), 'chunk')} of {searches})"

    def add(self, chunks: Iterable[Chunk] | Context, *, search: str | None = None, note: str = "") -> Delta:
        """Gather the chunks that a search found. If an error is raised, nothing is gathered.

        Args:
            chunks: The chunks with their ranks in this search, in any order; or the context of a retriever.
            search: A name for the search, such as the id of the tool message; a number by default.
            note: A line for the model after the passages, such as the number of unread chunks. It is part of the text
                in every layout.

        Returns:
            The text for the model, and the numbers of the chunks.

        Raises:
            ChunkError: An item is not a chunk, or two chunks have the same rank.
            MissingPositionError: A chunk has no position, and `on_missing_position="error"`.
            OptionError: `search` is not a string, or was already added; `note` is not a string; or a function in the
                options returned an unusable value.
            TokenizerError: `count_tokens` returned no usable count.
        """
        check_text("search", search, optional=True)
        check_text("note", note)
        if search in self._searches:
            raise OptionError(f"the search {describe(search)} was already added; use a different name", search)
        options = self._options
        given = sorted_by_rank(chunks.kept if isinstance(chunks, Context) else chunks)
        placed = place(given, options.source_key, options.position_key)
        kept = placed.chunks
        if options.on_missing_position in ("drop", "error"):
            kept, _ = without_missing(kept, options.on_missing_position)
        by_rank = {chunk.rank: chunk for chunk in given}
        numbers, names = self._identify(kept, by_rank)
        # The same store as in the warnings of the search.
        searched = chunks.inputs if isinstance(chunks, Context) else None
        warn_about(placed, kept, options, NO_STORE if searched is None else searched.store)
        best: dict[int, Chunk] = {}
        for chunk in kept:
            best.setdefault(numbers[chunk.rank], chunk)
        ordered = in_order(list(best.values()), options)
        before = len(self)
        # Number the new chunks in the order of the text.
        final = {number: number for number in best if number > 0}
        for chunk in ordered:
            if (number := numbers[chunk.rank]) < 0:
                final[number] = self._gather(chunk, by_rank[chunk.rank], names[chunk.rank])
        numbers = {rank: final[number] for rank, number in numbers.items()}
        found = [numbers[chunk.rank] for chunk in ordered]
        best_first = [final[number] for number in best]
        note = clean_note(note)
        try:
            shown = self._show(found, best_first, self._prompt, self._room(self.tokens), note)
        except OpragError:
            del self._gathered[before:]
            for index in ("_ids", "_places"):
                self.__dict__.pop(index, None)
            raise
        for number, chunk in zip(found, ordered, strict=True):
            if number <= before:
                self._update(self._gathered[number - 1], chunk)
        self._searches[self._next_name() if search is None else search] = Search(
            found, best_first, shown.parts, shown.over_budget, shown.tokens, _checksum(shown.text), note
        )
        self._mark_shown(shown, self._prompt)
        return _delta(found, shown, numbers)

    def forget(self, searches: Iterable[str]) -> None:
        """Mark the text of these searches as no longer visible to the model, for example after messages were removed.

        Their chunks stay gathered. When they are found again, their text is shown again, with the same numbers.

        Args:
            searches: Names of searches; unknown ones are ignored.
        """
        for name in searches:
            if (search := self._searches.get(name)) is not None and not search.forgotten:
                search.forgotten = True
                self.__dict__.pop("_prompt", None)

    def is_text_of(self, search: str, text: str) -> bool:
        """Whether this is the unchanged text that `add` returned for a search.

        Args:
            search: The name of the search.
            text: The text, such as the content of a tool message.
        """
        added = self._searches.get(search)
        return added is not None and added.checksum == _checksum(text)

    def layout(
        self,
        searches: Sequence[str] | None = None,
        layout: Layout = "delta",
        *,
        compact_above: int = 0,
        changed: Iterable[str] = (),
    ) -> list[str]:
        """The texts of search results for the next prompt.

        Args:
            searches: The searches whose results the prompt contains, in order; by default all that are not forgotten.
                Text that only other searches showed is shown again.
            layout: "delta": each result shows what is new in it, as returned by `add`. "compact": the last result
                contains all chunks of these searches, in order, and the others are pointers to it.
            compact_above: With "compact": results stay as in "delta" until they have more than this number of tokens in
                total.
            changed: The searches among `searches` whose text in the prompt was changed, such as redacted. Their chunks
                are not shown again.

        Returns:
            One text for each search; do not use the texts of `changed` in the prompt. With "delta", the text of a
            search does not depend on later searches.

        Raises:
            OptionError: `layout` or `compact_above` is invalid, or a search is unknown.
            MissingPositionError: With "compact" and `on_missing_position="error"`: a chunk has no position once all
                chunks are combined.
            TokenizerError: `count_tokens` returned no usable count.
        """
        check_layout(layout, compact_above)
        names = [name for name, search in self._searches.items() if not search.forgotten]
        names = names if searches is None else list(searches)
        for name in names:
            if name not in self._searches:
                raise OptionError(f"unknown search {describe(name)}; expected the name of an added search", name)
        tokens = sum(self._searches[name].tokens for name in names)
        if layout == "compact" and tokens > compact_above:
            return self._compact(names, frozenset(changed))
        return self._deltas(names)

    def context(self, **changes: Any) -> Context:
        """Build one context of all gathered chunks.

        Args:
            **changes: Options of `ContextOptions` to change, such as `token_budget=None` or `order="rank"`.

        Returns:
            The context of all gathered chunks, ranked by the best rank of each in any search.

        Raises:
            BudgetError: None of the gathered chunks fits `token_budget`.
            MissingPositionError: A chunk has no position, and `on_missing_position="error"`.
            OptionError: An option is unknown or invalid.
            TokenizerError: `count_tokens` returned no usable count.
        """
        context, _ = self._context(changes)
        return context

    def cited(self, answer: str) -> Cited:
        """Find the passages that the markers in an answer, such as [1], [2, 5] or [3-6], refer to.

        Args:
            answer: The text of the answer.

        Returns:
            The citations, and the numbers that no text for the model contained.

        Raises:
            OptionError: `answer` is not a string.
        """
        check_text("answer", answer)
        citations: list[Citation] = []
        unknown: dict[int, None] = {}
        markers = list(markers_in(answer))
        shown = self._shown({number for _, numbers in markers for number in numbers})
        for marker, numbers in markers:
            for number in numbers:
                if number in shown:
                    citations.append(citation_of(number, marker, _passage(self.chunk(number))))
                else:
                    unknown[number] = None
        return Cited(tuple(citations), tuple(unknown))

    def chunk(self, number: int) -> Chunk:
        """The chunk with this number: its text, best rank, source, span and ids, and metadata about its place.

        Args:
            number: A number of this working context.

        Raises:
            OptionError: No chunk has this number.
        """
        if type(number) is not int or not 1 <= number <= len(self._gathered):
            numbers = (
                f"the numbers are 1 to {len(self._gathered)}" if self._gathered else "the working context is empty"
            )
            raise OptionError(f"no passage has the number {describe(number)}; {numbers}", number)
        return self._gathered[number - 1].chunk

    def to_dict(self) -> dict[str, Any]:
        """The gathered chunks and searches as JSON values, for a checkpoint.

        Options and the framework's objects are not included. Of the metadata, only fields for sources and positions are
        included.
        """
        return to_plain(self._gathered, self._searches)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], options: ContextOptions | None = None, **changes: Any) -> Self:
        """Create a working context from the result of `to_dict`.

        Args:
            data: The result of `to_dict`, which may have been serialized as JSON.
            options: The options; they should be the same as those of the original.
            **changes: Options of `ContextOptions` to change.

        Raises:
            DataError: `data` is not a result of `to_dict`, or is from a newer version.
            OptionError: An option is unknown, invalid, or belongs to the search.
        """
        working = cls(options, **changes)
        try:
            rows, working._searches = from_plain(data)
            for chunk, framework_span, since in rows:
                working._remember(chunk, framework_span, since)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OpragError) as error:
            raise DataError(
                f"not a saved working context ({masked_error(error)}); pass the result of to_dict()",
                data,
            ) from error
        return working

    # Gathering chunks.

    def _identify(
        self, chunks: Sequence[Chunk], given: Mapping[int, Chunk]
    ) -> tuple[dict[int, int], dict[int, _PlaceName]]:
        """The number of each chunk by rank (negative for new chunks), and the place names of new chunks by rank."""
        numbers: dict[int, int] = {}
        names: dict[int, _PlaceName] = {}
        used = {number for chunk in chunks if (number := self._ids.get(_id_name(chunk)))}
        new: dict[Any, int] = {}
        for chunk in chunks:
            identity = _id_name(chunk)
            number = self._ids.get(identity) or new.get(identity) or 0
            if not number:
                name, exact = _place_name(chunk, _framework_span(chunk, given[chunk.rank]))
                names[chunk.rank] = name
                if exact:
                    number = next(iter(self._places.get(name, ())), 0) or new.get(name, 0)
                if not number:
                    # Across searches, equal text without an id is the same chunk; within one search it is not. A chunk
                    # may also have been added earlier without an offset.
                    equal = (*self._places.get(name, ()), *self._places.get(name._replace(offset=None), ()))
                    free = (known for known in equal if known not in used)
                    number = next((known for known in free if chunk.id is None or self.chunk(known).id is None), 0)
                number = number or -1 - len(numbers)
                if number > 0 and identity is not None:
                    self._add_id(number, chunk.id)
                elif number < 0:
                    new |= {key: number for key in (identity, name if exact else None) if key is not None}
            used.add(number)
            numbers[chunk.rank] = number
        return numbers, names

    def _add_id(self, number: int, identity: str | None) -> None:
        """Store the id of a chunk that was added without one."""
        gathered = self._gathered[number - 1]
        if gathered.chunk.id is None:
            gathered.chunk = changed(gathered.chunk, id=identity)
            self._ids.setdefault(_id_name(gathered.chunk), number)

    def _gather(self, chunk: Chunk, given: Chunk, name: _PlaceName) -> int:
        """Add a new chunk, and return its number."""
        kept = changed(
            chunk,
            metadata=_facts(given, self._options),
            position=None,
            score=None,
            vector=None,
            similarity=None,
            neighbor_of=None,
            origin=None,
        )
        gathered = self._remember(kept, _framework_span(kept, given))
        if kept.id is not None:
            self._ids.setdefault(_id_name(kept), gathered.number)
        self._places[name].append(gathered.number)
        return gathered.number

    def _update(self, gathered: Gathered, chunk: Chunk) -> None:
        """Update the rank and place of a chunk from another search."""
        known = gathered.chunk
        if chunk.rank < known.rank:
            gathered.chunk = known = changed(known, rank=chunk.rank)
        if known.place is None and chunk.place is not None:
            places = self._places
            before, _ = _place_name(known, gathered.framework_span)
            gathered.chunk = known = changed(known, place=chunk.place, span=known.span or chunk.span)
            after, _ = _place_name(known, gathered.framework_span)
            places[before].remove(gathered.number)
            places[after].append(gathered.number)
        if gathered.place is None and (where := self._place(known)) is not None:
            gathered.place, gathered.frame, gathered.since = where, (known.source, where.page), len(self._searches)
            self.__dict__.pop("_prompt", None)

    def _remember(self, chunk: Chunk, framework_span: Span | None, since: int = 0) -> Gathered:
        where = self._place(chunk)
        frame = None if where is None else (chunk.source, where.page)
        gathered = Gathered(chunk, len(self._gathered) + 1, framework_span, where, frame, since)
        self._gathered.append(gathered)
        return gathered

    def _place(self, chunk: Chunk) -> Span | None:
        """The place of a chunk's text in its source, or in the insertion order of its store; None if not exact."""
        if chunk.source is None or not self._options.stitch:
            return None
        where = chunk.span
        if where is None and chunk.place is not None:
            where = place_in_source(changed(chunk, position=_RECEIVED))
        return where if where is not None and is_exact(chunk, where) else None

    @cached_property
    def _ids(self) -> dict[Any, int]:
        """The number of each chunk by id; built on first use."""
        ids: dict[Any, int] = {}
        for gathered in self._gathered:
            if gathered.chunk.id is not None:
                ids.setdefault(_id_name(gathered.chunk), gathered.number)
        return ids

    @cached_property
    def _places(self) -> defaultdict[_PlaceName, list[int]]:
        """The numbers of chunks by text and place; built when a chunk with an unknown id is added."""
        places: defaultdict[_PlaceName, list[int]] = defaultdict(list)
        for gathered in self._gathered:
            name, _ = _place_name(gathered.chunk, gathered.framework_span)
            places[name].append(gathered.number)
        return places

    # Showing text.

    @cached_property
    def _prompt(self) -> _VisibleText:
        """The text that the model can see; rebuilt after searches were forgotten."""
        visible = (search.parts for search in self._searches.values() if not search.forgotten)
        return self._prompt_of(len(self._searches), visible)

    def _prompt_of(self, index: int, shown: Iterable[Mapping[int, Parts]]) -> _VisibleText:
        prompt = _VisibleText(index)
        for parts_of in shown:
            for number, parts in parts_of.items():
                prompt.show(self._gathered[number - 1], parts)
        return prompt

    def _mark_shown(self, shown: _Shown, prompt: _VisibleText) -> None:
        """Add a search result to a prompt."""
        for number, parts in shown.parts.items():
            prompt.show(self._gathered[number - 1], parts)
            prompt.visible[number] = [number]
        prompt.visible |= shown.elsewhere
        prompt.index += 1

    def _room(self, used: int) -> int | None:
        budget = self._options.token_budget
        return None if budget is None else max(0, budget - used)

    def _next_name(self) -> str:
        return next(name for name in map(str, itertools.count(len(self._searches) + 1)) if name not in self._searches)

    def _deltas(self, names: Iterable[str]) -> list[str]:
        """The results with only their new text."""
        indexes = {name: index for index, name in enumerate(self._searches)}
        place_changes = {gathered.since for gathered in self._gathered}
        results: list[_Shown] = []
        prompt = _VisibleText(0)
        tokens = 0
        for name in names:
            search, index = self._searches[name], indexes[name]
            if place_changes.isdisjoint(range(prompt.index, index + 1)):
                prompt.index = index
            else:
                prompt = self._prompt_of(index, (shown.parts for shown in results))
            shown = self._show(search.found, search.best_first, prompt, self._room(tokens), search.note)
            results.append(shown)
            tokens += shown.tokens
            self._mark_shown(shown, prompt)
        return [shown.text for shown in results]

    def _shown(self, numbers: set[int]) -> set[int]:
        """The numbers among these that have text in a search result or in the compact layout."""
        shown = {number for search in self._searches.values() for number in numbers.intersection(search.parts)}
        if any(1 <= number <= len(self) for number in numbers - shown):
            _, shown_by = self._compact_text(range(1, len(self) + 1), "")
            shown |= {number for number in numbers if shown_by.get(number) == [number]}
        return shown

    def _compact(self, names: Sequence[str], changed: frozenset[str]) -> list[str]:
        """Pointers for all results except the last unchanged one, which contains all chunks of unchanged results."""
        unchanged = [name for name in names if name not in changed]
        if not unchanged:
            return [""] * len(names)
        hidden = {number for name in changed.intersection(names) for number in self._searches[name].found}
        found = {number for name in unchanged for number in self._searches[name].found}
        text, shown_by = self._compact_text(found - hidden, self._searches[unchanged[-1]].note)
        texts: list[str] = []
        for name in names:
            search = self._searches[name]
            seen = [number for number in search.found if number in hidden]
            labels = dict.fromkeys(label for number in search.found for label in shown_by.get(number, ()))
            if name == unchanged[-1] and (found - hidden or not seen):
                texts.append(text)
            elif labels:
                texts.append(_with_note(_pointer(labels, _COMPACTED), search.note))
            elif seen:
                texts.append(_with_note(_pointer(seen), search.note))
            else:
                missing = f"({_over_budget_line(len(search.found))})" if search.found else _NOTHING
                texts.append(_with_note(missing, search.note))
        return texts

    def _compact_text(self, found: Collection[int], note: str) -> tuple[str, dict[int, list[int]]]:
        """The text of these numbers as one context within the token budget, and for each the numbers that show it."""
        allowed = budget = self._options.token_budget
        title = _ALL_IN_ORDER if self._options.order == "source" else _ALL
        while True:
            context, numbers = self._context_within(allowed, found)
            omitted = len(found) - len(numbers)
            text, parts, elsewhere = self._render(numbers, _VisibleText(len(self._searches)))
            rest = f"({_over_budget_line(omitted)})" if omitted else ""
            text = _BETWEEN.join(filter(None, [title, text, rest] if numbers else [rest or _NOTHING]))
            text = _with_note(text, note)
            if budget is None or not numbers or (tokens := count(text, self._options.count_tokens)) <= budget:
                return text, {**elsewhere, **{number: [number] for number in parts}}
            # Numbers and labels take tokens, too.
            allowed = context.tokens - (tokens - budget)

    def _show(
        self, found: Sequence[int], best_first: Sequence[int], prompt: _VisibleText, room: int | None, note: str
    ) -> _Shown:
        """The text of a search result for a model that sees a prompt; at most `room` tokens, or only pointers."""
        counter = self._options.count_tokens
        text, parts, elsewhere = self._render(found, prompt, best_first)
        text = _with_note(text or _NOTHING, note)
        tokens = count(text, counter)
        if room is None or tokens <= room or not parts:
            return _Shown(text, parts, elsewhere, frozenset(), tokens)
        kept: list[int] = []
        fresh: list[int] = []
        left = room
        for number in best_first:
            text, parts, _ = self._render([number], prompt, best_first)
            if parts:
                fresh.append(number)
                if (charge := count(text, counter)) <= left:
                    left -= charge
                    kept.append(number)
        if len(kept) == len(fresh):
            kept.pop()
        while True:
            over_budget = frozenset(fresh).difference(kept)
            remaining = [number for number in found if number not in over_budget]
            text, parts, elsewhere = self._render(remaining, prompt, best_first)
            # Omit the note: it describes all chunks, including those that were left out.
            text = _BETWEEN.join(filter(None, [text, f"({_over_budget_line(len(over_budget))})"]))
            tokens = count(text, counter)
            if tokens <= room or not kept:
                return _Shown(text, parts, elsewhere, over_budget, tokens)
            # If the counter underestimates single chunks, dropping them one by one would take quadratic time.
            excess = int(len(kept) * (1 - room / tokens) / 2) if len(kept) > _RECOUNT_EACH_UP_TO else 0
            del kept[-max(1, excess) :]

    def _render(
        self, found: Iterable[int], prompt: _VisibleText, best_first: Sequence[int] | None = None
    ) -> tuple[str, dict[int, Parts], dict[int, list[int]]]:
        """The text of these numbers, the parts of each that it contains, and the numbers that show the others.

        Without `best_first`, the text is a whole context, without pointers.
        """
        texts: list[str] = []
        here = _VisibleText(prompt.index)
        elsewhere: dict[int, list[int]] = {}
        pointers: dict[int, None] = {}
        last: Gathered | None = None
        shown_head = ""
        before = 0
        for number in found:
            gathered = self._gathered[number - 1]
            where = prompt.visible.get(number)
            if where is None:
                parts, gaps = _split(gathered.chunk.text, self._covered(gathered, prompt, here))
                where = None if parts else [number] if number in prompt.parts else gaps[0]
            if where is not None:
                elsewhere[number] = where
                if best_first is not None:
                    pointers.update(dict.fromkeys(where))
                    last = gathered
                continue
            if pointers:
                texts += [_BETWEEN if texts else "", _pointer(pointers)]
                pointers = {}
            if texts:
                texts.append("\n" if last is not None and _follows(last, gathered, prompt.index) else _BETWEEN)
            head = self._head(gathered, best_first, prompt.index)
            texts.append(_labelled(gathered, "" if head == shown_head else head, parts, gaps, before))
            here.show(gathered, parts)
            last, shown_head, before = gathered, head, number
        if pointers:
            texts += [_BETWEEN if texts else "", _pointer(pointers)]
        return "".join(texts), here.parts, elsewhere

    def _covered(self, gathered: Gathered, *prompts: _VisibleText) -> list[tuple[int, int, int]]:
        """The parts of a chunk's text that prompts show, each with the number that shows it, sorted."""
        number, where = gathered.number, gathered.place_at(prompts[0].index)
        covered = [(*part, number) for prompt in prompts for part in prompt.parts.get(number, ())]
        if where is None:
            return covered
        shared: dict[int, Parts] = {}
        for prompt in prompts:
            for start, end, by in prompt.near(gathered, where):
                if by != number:
                    shared.setdefault(by, []).append(
                        (max(start, where.start) - where.start, min(end, where.end) - where.start)
                    )
        if len(shared) > _FEW:
            lengths = {by: sum(end - start for start, end in parts) for by, parts in shared.items()}
            largest = sorted((by for by in shared if lengths[by] >= _SHORT), key=lambda by: -lengths[by])
            shared = {by: shared[by] for by in largest[:_MANY]}
        covered += [(*part, by) for by, parts in shared.items() if self._agree(number, by) for part in parts]
        covered.sort()
        return covered

    def _agree(self, number: int, other: int) -> bool:
        """Whether two chunks that overlap in their source certainly have the same text in the overlap."""
        pair = (number, other) if number < other else (other, number)
        known = self._agreeing.get(pair)
        if known is None:
            first, second = self._gathered[pair[0] - 1], self._gathered[pair[1] - 1]
            part = None
            if first.place is not None and second.place is not None:
                part = repeated_part(first.chunk.text, first.place, second.chunk.text, second.place)
            known = self._agreeing[pair] = part is not None
        return known

    def _head(self, gathered: Gathered, best_first: Sequence[int] | None, index: int) -> str:
        """The text after the number of a passage: its source and page, or the header of the options."""
        chunk, header = gathered.chunk, self._options.header
        if header is None:
            page = page_of(chunk)
            return _head_of(chunk.source or "", "" if page is None else str(page))
        if best_first is not None:
            # Rank and place may change later, but shown text must not.
            chunk = changed(chunk, rank=best_first.index(gathered.number))
            if gathered.since > index:
                chunk = changed(chunk, span=None, located=None)
        return _one_label(header_of(_passage(chunk), header, gathered.number))

    def _context_within(self, token_budget: int | None, found: Collection[int]) -> tuple[Context, list[int]]:
        """Version of `_context` with a token budget; returns an empty context if no chunk fits."""
        if token_budget is None or token_budget > 0:
            with suppress(BudgetError):
                return self._context({"token_budget": token_budget}, found)
        return Context((), (), (), self._options), []

    def _context(self, changes: dict[str, Any], found: Collection[int] | None = None) -> tuple[Context, list[int]]:
        """The context of these numbers, or of all, and the number of each kept chunk."""
        gathered = [item for item in self._gathered if found is None or item.number in found]
        best_first = sorted(gathered, key=lambda item: (item.chunk.rank, item.number))
        chunks = [changed(item.chunk, rank=rank, span=item.framework_span) for rank, item in enumerate(best_first)]
        position_key = None if self._options.position_key is None else _POSITION
        options = replace(self._options, source_key=None, position_key=position_key)
        context = build_context(chunks, options, **changes)
        return context, [best_first[chunk.rank].number for chunk in context.kept]


_RECEIVED = Position((), PositionKind.STORE)


def _delta(found: Sequence[int], shown: _Shown, numbers: Mapping[int, int]) -> Delta:
    repeated = tuple(number for number in found if number not in shown.parts and number not in shown.over_budget)
    over_budget = tuple(number for number in found if number in shown.over_budget)
    return Delta(shown.text, tuple(found), tuple(shown.parts), repeated, over_budget, numbers, shown.tokens)


def check_layout(layout: Any, compact_above: Any) -> None:
    """Reject an unknown layout, and an invalid or unused `compact_above`."""
    check_choice("layout", layout, get_args(Layout))
    check_count("compact_above", compact_above, optional=False, minimum=0)
    if compact_above and layout != "compact":
        raise OptionError(
            f'compact_above={compact_above} requires layout="compact", got layout="{layout}"; set layout="compact" or '
            "remove compact_above",
            compact_above,
        )


def _checksum(text: str) -> int:
    # At most 53 bits, since JSON readers may round larger integers.
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).digest())


def _with_note(text: str, note: str) -> str:
    return f"{text}{_BETWEEN}{note}" if note else text


@lru_cache(maxsize=256)
def _head_of(source: str, page: str) -> str:
    """The source and page as the model reads them."""
    page = f", page {shown(page, _MAX_LABEL_LENGTH)}" if page else ""
    return _one_label(shown(source, _MAX_LABEL_LENGTH) + page)


def _one_label(text: str) -> str:
    return shortened(printable(one_line(text[: 2 * _MAX_LABEL_LENGTH])), _MAX_LABEL_LENGTH)


def _passage(chunk: Chunk) -> Passage:
    return Passage(chunk.text, (chunk,), () if chunk.span is None else (chunk.span,))


def _facts(chunk: Chunk, options: ContextOptions) -> dict[str, Any]:
    """The metadata fields for source and position, as plain values."""
    facts = {
        name: plain
        for name, value in chunk.metadata.items()
        if name in _KEPT_FIELDS and (plain := _plain(value)) is not None
    }
    key = options.position_key
    if key is None:
        return facts
    if isinstance(key, tuple):
        value: Any = [chunk.metadata.get(name) for name in key]
    else:
        value = key(chunk) if callable(key) else chunk.metadata.get(key)
    if isinstance(value, list | tuple):
        facts[_POSITION] = [_plain_part(part) for part in value]
    elif (part := _plain_part(value)) is not None:
        facts[_POSITION] = part
    return facts


def _plain(value: Any) -> Any:
    """Convert a metadata value to a JSON value; None if it is unusable."""
    if type(value) is int:
        return value if -TOO_LARGE < value < TOO_LARGE else None
    if isinstance(value, str):
        return str(value) if len(value) <= _MAX_VALUE_LENGTH else None
    if isinstance(value, bool):
        return value
    number = ordinal(value)
    return finite(plain_number(value)) if number is None else number


def _plain_part(value: Any) -> Any:
    """Convert a part of a position from `position_key` to a JSON value."""
    return value.isoformat() if isinstance(value, date) else str(value) if isinstance(value, str) else _plain(value)


def _framework_span(chunk: Chunk, given: Chunk) -> Span | None:
    """The span from the framework's metadata, which determines the chunk's position in the context."""
    if given.span is None:
        return plain_span(chunk)
    start, end, page = given.span
    first, last = whole(start), whole(end)
    if first is None:
        return None
    if last is None or last < first:
        last = first + len(chunk.text)
    return Span(first, last, page if isinstance(page, str | int) else None)


def _id_name(chunk: Chunk) -> Any:
    return None if chunk.id is None else (chunk.source, chunk.id, chunk.text)


def _place_name(chunk: Chunk, framework_span: Span | None) -> tuple[_PlaceName, bool]:
    """The text and place of a chunk, and whether they identify it uniquely."""
    facts: list[Any] = []
    names: list[Any] = []
    exact = False
    for name, value in chunk.metadata.items():
        if name in _PLACE_FIELDS:
            # Some stores change the type of numbers.
            number = value if type(value) is int and 0 <= value < TOO_LARGE else ordinal(value)
            if number is not None:
                exact = exact or name in _EXACT_FIELDS
                facts.append((name, number))
            elif name in PAGE_FIELDS and isinstance(value, str) and len(value) <= _MAX_VALUE_LENGTH:
                facts.append((name, value.strip()))
        elif name in _NAMES_WITH_PLACES and (plain := _plain(value)) not in (None, chunk.source):
            # A source name or URL may contain a page or a time.
            names.append((name, str(plain)))
    offset = None
    stated = framework_span or (chunk.place and chunk.place.span)
    if not exact and stated:
        offset = whole(stated[0])
        exact = offset is not None
    exact = chunk.source is not None and (exact or (chunk.id is None and bool(facts)))
    return _PlaceName(chunk.source, chunk.text, offset, frozenset(facts + names)), exact


def _split(text: str, covered: Sequence[tuple[int, int, int]]) -> tuple[Parts, list[list[int]]]:
    """The parts of a text that are not covered, and the numbers that cover each gap before, between and after them."""
    if not covered:
        return ([(0, len(text))] if text and not text.isspace() else []), [[], []]
    parts: Parts = []
    gaps: list[list[int]] = [[]]
    at = 0
    for start, end, number in covered:
        if start > at and not text[at:start].isspace():
            parts.append((at, start))
            gaps.append([])
        if end > at and number not in gaps[-1]:
            gaps[-1].append(number)
        at = max(at, end)
    if at < len(text) and not text[at:].isspace():
        parts.append((at, len(text)))
        gaps.append([])
    return parts, gaps


def _labelled(gathered: Gathered, head: str, parts: Parts, gaps: Sequence[Sequence[int]], before: int) -> str:
    """The parts of a chunk's text under its number."""
    number, text = gathered.number, gathered.chunk.text
    label = f"[{number}]{' ' if head else ''}"
    notes = _connection(number, gaps, before)
    first, *rest = (text[start:end] for start, end in parts)
    if notes:
        shown = f"{label}{without_markers(head)} {notes}\n{without_markers(first)}"
    else:
        # Together, because a marker could start in the name and end in the text.
        shown = label + without_markers(f"{head}\n{first}") if head else f"{label} {without_markers(first)}"
    between = gaps[1:-1]
    return shown + "".join(
        f"\n{_pointer(gap)}\n{without_markers(part)}" for gap, part in zip(between, rest, strict=True)
    )


def _connection(number: int, gaps: Sequence[Sequence[int]], before: int) -> str:
    """A note such as "(continues [3])"; empty if the text only continues the previous passage."""
    start = next((other for other in gaps[0][-1:] if other not in (number, before)), None)
    end = next((other for other in gaps[-1][:1] if other != number), None)
    if start is not None and end is not None:
        return f"(between [{start}] and [{end}])"
    if start is not None:
        return f"(continues [{start}])"
    return "" if end is None else f"(continues in [{end}])"


def _pointer(numbers: Iterable[int], where: str = _SHOWN) -> str:
    return f"{', '.join(f'[{number}]' for number in numbers)} {where}"


def _follows(first: Gathered, second: Gathered, index: int) -> bool:
    """Whether one chunk directly follows another, ignoring whitespace that a splitter strips."""
    a, b = first.place_at(index), second.place_at(index)
    if a is None or b is None or first.frame != second.frame:
        return False
    return b.start >= a.start and b.start - a.end <= _STRIPPED


def _over_budget_line(number: int) -> str:
    return f"{counted(number, 'passage')} omitted: token budget exhausted"
