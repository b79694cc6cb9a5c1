"""One ordered context for many searches of an agent: deduplicated, numbered, in the order of the sources."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from hashlib import blake2b
from typing import Any, Literal, NamedTuple, Self, get_args

from oprag._internal.masking import describe, masked_error
from oprag.agents.identity import kept_chunks
from oprag.agents.memory import Memory, Search
from oprag.agents.numbered_text import (
    NOTHING,
    VisibleText,
    Written,
    clean_note,
    omitted,
    passage_of,
    pointer,
    write_result,
)
from oprag.agents.search_result_blocks import Form, fingerprint, numbered_blocks, read_answer, source_name
from oprag.agents.whole_context import combined, write_combined, write_source
from oprag.chunk import Chunk, Passage, Place, counted
from oprag.context import Context
from oprag.errors import DataError, OptionError
from oprag.methods.citations import Citation, citation_of, cited_in
from oprag.methods.quotes import is_quoted, normal
from oprag.options import ContextOptions, as_context_options, check_choice, check_count, check_text

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
_COMPACTED = "(shown in source order in the last search result)"


@dataclass(frozen=True)
class Delta:
    """The result of adding a search to a working context.

    Attributes:
        text: The text for the model: new chunks with their numbers, and pointers instead of the others.
        content: The same in the form that was asked for: the text, or `search_result` blocks.
        numbers: The numbers of all chunks of the search, in the order of the text.
        new: The numbers of chunks with text shown in this result.
        repeated: The numbers of chunks whose text was shown before, or is only whitespace.
        over_budget: The numbers of chunks that do not fit the token budget.
        ranks: The number of each given chunk, by its rank in the search.
        tokens: Number of tokens in `text`.
    """

    text: str
    content: str | list[dict[str, Any]] = field(repr=False)
    numbers: tuple[int, ...]
    new: tuple[int, ...]
    repeated: tuple[int, ...]
    over_budget: tuple[int, ...]
    ranks: Mapping[int, int] = field(repr=False)
    tokens: int


class Cited(NamedTuple):
    """The citations in an answer.

    Attributes:
        text: The text of the answer.
        citations: One for each number in each marker, and for each citation that the provider of the model attached;
            with passage, source and span.
        unknown: What is cited without having been shown to the model: the numbers in markers, and the titles (or
            sources) in citations of the provider.
    """

    text: str
    citations: tuple[Citation, ...]
    unknown: tuple[int | str, ...]

    @property
    def misquoted(self) -> tuple[Citation, ...]:
        """The citations whose quote is not in the passage."""
        return tuple(citation for citation in self.citations if citation.misquoted)


class WorkingContext:
    """The chunks that an agent gathers in many searches: deduplicated, numbered, in the order of the sources.

    Add the chunks of one search after another. Each `add` returns the text for the model: new text in source order, and
    pointers such as "[3] (already shown)" to text that was shown before. `context` returns all gathered chunks.

    - A chunk is gathered once, even if several searches find it, and its number never changes.
    - Its rank is its best rank in any search; ties go to the lower number.
    - No chunk is shown twice, and no text is lost. In one result, chunks that overlap are joined, as `build_context`
      does; a chunk that overlaps text of an earlier result is shown whole, unless that text contains it. Chunks of only
      whitespace are not shown.
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
        self._memory = Memory(self._options.stitch)

    @property
    def options(self) -> ContextOptions:
        """The options."""
        return self._options

    @property
    def searches(self) -> tuple[str, ...]:
        """The names of the searches, in the order in which they were added."""
        return tuple(self._memory.searches)

    @property
    def sources(self) -> dict[str | None, list[int]]:
        """The sources, in the order in which they were found, with the numbers of their chunks."""
        sources: dict[str | None, list[int]] = {}
        for number, chunk in enumerate(self._memory.chunks, 1):
            sources.setdefault(chunk.source, []).append(number)
        return sources

    @property
    def tokens(self) -> int:
        """Number of tokens of all deltas that the model can see."""
        memory = self._memory
        return sum(search.tokens for name, search in memory.searches.items() if name not in memory.forgotten)

    def __len__(self) -> int:
        return len(self._memory.chunks)

    def __repr__(self) -> str:
        searches = f"{len(self.searches):,} search{'' if len(self.searches) == 1 else 'es'}"
        return f"WorkingContext({counted(len(self), 'chunk')} of {searches})"

    def add(
        self, chunks: Iterable[Chunk] | Context, *, search: str | None = None, note: str = "", content: Form = "text"
    ) -> Delta:
        """Gather the chunks that a search found. If an error is raised, nothing is gathered.

        Args:
            chunks: The chunks with their ranks in this search, in any order; or the context of a retriever.
            search: A name for the search, such as the id of the tool message; a number by default.
            note: A line for the model after the passages, such as the number of unread chunks. It is part of the text
                in every layout.
            content: The form of the result, here and in every layout: "text", or "search_result" for a list of
                `search_result` content blocks, by which Claude cites: one for each passage. Tokens are those of the
                text.

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
        check_choice("content", content, get_args(Form))
        if search in self._memory.searches:
            raise OptionError(f"the search {describe(search)} was already added; use a different name", search)
        options = self._options
        given = kept_chunks(chunks, options)
        memory = self._memory.copy()
        known = len(memory.chunks)
        numbers: dict[int, int] = {}
        ranks: dict[int, int] = {}
        places: list[tuple[int, Place]] = []
        for chunk, span in given:
            number = memory.gather(chunk, span, ranks)
            if chunk.place is not None and memory.chunks[number - 1].place is None:
                memory.place(number, chunk.place)
                places.append((number, chunk.place))
            numbers[chunk.rank] = number
            ranks[number] = min(chunk.rank, ranks.get(number, chunk.rank))
        found, note = memory.found(ranks.items()), clean_note(note)
        heads = partial(memory.head, options)
        result = write_result(found, heads, memory.visible, options, room=self._room(self.tokens), note=note)
        memory.visible.show(found, result.shown, result.within)
        shaped = _shaped(result, memory, blocks=content == "search_result")
        memory.add(
            Search(
                self._next_name() if search is None else search,
                list(ranks.items()),
                memory.chunks[known:],
                memory.spans[known:],
                places,
                result.shown,
                result.within,
                result.tokens,
                _checksum(fingerprint(shaped)),
                note,
                content == "search_result",
            )
        )
        self._memory = memory
        shown = {*result.shown, *result.over_budget}
        repeated = tuple(number for number in ranks if number not in shown)
        over_budget = tuple(number for number in ranks if number in result.over_budget)
        new = tuple(result.shown)
        return Delta(result.text, shaped, tuple(ranks), new, repeated, over_budget, numbers, result.tokens)

    def forget(self, searches: Iterable[str]) -> None:
        """Mark the text of these searches as no longer visible to the model, for example after messages were removed.

        Their chunks stay gathered. When they are found again, their text is shown again, with the same numbers.

        Args:
            searches: Names of searches; unknown ones are ignored.
        """
        memory = self._memory
        if names := [name for name in searches if name in memory.searches and name not in memory.forgotten]:
            self._memory = memory.copy()
            self._memory.forget(names)

    def is_result_of(self, search: str, content: Any) -> bool:
        """Whether this is the unchanged content that `add` returned for a search.

        Args:
            search: The name of the search.
            content: The text or blocks, such as the content of a tool message.
        """
        added = self._memory.searches.get(search)
        is_content = isinstance(content, str | list)
        return added is not None and is_content and added.checksum == _checksum(fingerprint(content))

    def layout(
        self,
        searches: Sequence[str] | None = None,
        layout: Layout = "delta",
        *,
        compact_above: int = 0,
        changed: Iterable[str] = (),
    ) -> list[Any]:
        """The texts of search results for the next prompt, or their blocks.

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
            One text for each search, or a list of blocks if it was added with `content="search_result"`; do not use
            those of `changed` in the prompt. With "delta", the text of a search does not depend on later searches.

        Raises:
            OptionError: `layout` or `compact_above` is invalid, or a search is unknown.
            MissingPositionError: With "compact" and `on_missing_position="error"`: a chunk has no position once all
                chunks are combined.
            TokenizerError: `count_tokens` returned no usable count.
        """
        check_layout(layout, compact_above)
        added = self._memory.searches
        names = [name for name in added if name not in self._memory.forgotten] if searches is None else list(searches)
        for name in names:
            if name not in added:
                raise OptionError(f"unknown search {describe(name)}; expected the name of an added search", name)
        if layout == "compact" and sum(added[name].tokens for name in names) > compact_above:
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
        return combined(self._memory, self._options, changes)

    def source_text(self, source: str | None) -> str:
        """Write everything gathered from one source as a file: numbered passages in source order, stitched.

        A line "[…]" stands between passages that do not touch, and a heading such as "## [4] Install, page 2" where the
        section or page changes. Document text can contain neither: its "[4]" and "[…]" are changed to "[ 4 ]" and
        "[ … ]".

        Args:
            source: The name of the source, as in `chunk(number).source`.

        Raises:
            MissingPositionError: A chunk has no position, and `on_missing_position="error"`.
        """
        return write_source(self._memory, self._options, source)

    def join(self, other: Self) -> dict[int, int]:
        """Gather what a copy of this working context gathered in the meantime, such as that of a subagent.

        The text that the copy returned is not visible to the model of this working context.

        Args:
            other: A working context that was created from this one with `from_dict`, or an empty one, and then used.

        Returns:
            The number here of each number of `other`. They differ for chunks that `other` gathered if this working
            context gathered others in the meantime.
        """
        memory = self._memory.copy()
        numbers = memory.join(other._memory)
        self._memory = memory
        return numbers

    def cited(self, answer: Any) -> Cited:
        """Find the passages that an answer cites, and the quotes that they do not contain.

        It cites by markers, such as [1], [2, 5] or [3-6]; and by the citations that a provider attached because it was
        given `search_result` blocks.

        Args:
            answer: The text of the answer; or its message, which also has the citations of the provider: that of
                LangChain, LlamaIndex or Anthropic's client.

        Raises:
            OptionError: `answer` is neither a text nor a message.
        """
        text, attached = read_answer(answer)
        shown = {number for search in self._memory.searches.values() for number in search.shown}

        @cache
        def everything() -> frozenset[int]:
            return frozenset(write_combined(self._memory, self._options, range(1, len(self) + 1)).shown)

        def passage_shown(number: int) -> Passage | None:
            is_shown = 1 <= number <= len(self) and (number in shown or number in everything())
            return passage_of(self.chunk(number)) if is_shown else None

        citations, numbers = cited_in(text, passage_shown)
        unknown: list[int | str] = [*numbers]
        for one in attached:
            passage = passage_shown(one.number)
            if passage is None or one.source != source_name(passage.source):
                unknown.append(one.title or one.source or "")
                continue
            misquoted = one.text is not None and not is_quoted(one.text, normal(passage.text))
            citations.append(citation_of(one.number, one.start, one.end, passage, one.text, misquoted=misquoted))
        citations.sort(key=lambda citation: citation.start)
        return Cited(text, tuple(citations), tuple(dict.fromkeys(unknown)))

    def chunk(self, number: int) -> Chunk:
        """The chunk with this number: its text, best rank, source, span and ids, and metadata about its place.

        Args:
            number: A number of this working context.

        Raises:
            OptionError: No chunk has this number.
        """
        if type(number) is not int or not 1 <= number <= len(self):
            numbers = f"the numbers are 1 to {len(self)}" if len(self) else "the working context is empty"
            raise OptionError(f"no passage has the number {describe(number)}; {numbers}", number)
        return self._memory.shown(number, self._memory.ranks[number - 1])

    def to_dict(self) -> dict[str, Any]:
        """The gathered chunks and searches as JSON values, for a checkpoint.

        Options and the framework's objects are not included. Of the metadata, only fields for sources and positions are
        included. What was saved before is not converted again.

        Raises:
            MissingExtraError: The package `pydantic` is not installed.
        """
        from oprag.agents.saved import written

        return written(self._memory, self._options)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], options: ContextOptions | None = None, **changes: Any) -> Self:
        """Create a working context from the result of `to_dict`.

        Args:
            data: The result of `to_dict`, which may have been serialized as JSON.
            options: The options; they should be the same as those of the original.
            **changes: Options of `ContextOptions` to change.

        Raises:
            DataError: `data` is not a result of `to_dict`, or is from another version.
            MissingExtraError: The package `pydantic` is not installed.
            OptionError: An option is unknown, invalid, or belongs to the search.
        """
        from oprag.agents.saved import read

        working = cls(options, **changes)
        try:
            working._memory = read(data, working._options)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"not a saved working context ({masked_error(error)}); pass the result of to_dict()", data
            ) from error
        return working

    def _next_name(self) -> str:
        names = self._memory.searches
        return next(name for name in map(str, itertools.count(len(names) + 1)) if name not in names)

    def _room(self, used: int) -> int | None:
        budget = self._options.token_budget
        return None if budget is None else max(0, budget - used)

    def _deltas(self, names: Iterable[str]) -> list[Any]:
        """The results with only their new text."""
        memory, visible, tokens = self._memory, VisibleText(), 0
        texts: list[Any] = []
        for search in map(memory.searches.__getitem__, names):
            found = memory.found(search.found)
            heads = partial(memory.head, self._options)
            result = write_result(found, heads, visible, self._options, room=self._room(tokens), note=search.note)
            visible.show(found, result.shown, result.within)
            tokens += result.tokens
            texts.append(_shaped(result, memory, blocks=search.blocks))
        return texts

    def _compact(self, names: Sequence[str], changed: frozenset[str]) -> list[Any]:
        """Pointers for all results except the last unchanged one, which contains all chunks of unchanged results."""
        searches = [self._memory.searches[name] for name in names]
        unchanged = [search for search in searches if search.name not in changed]
        if not unchanged:
            return [""] * len(names)
        hidden = {number for search in searches if search.name in changed for number, _ in search.found}
        found = {number for search in unchanged for number, _ in search.found} - hidden
        written = write_combined(self._memory, self._options, found, unchanged[-1].note)
        shown_by = dict(zip(written.shown, written.shown, strict=True)) | dict(written.within)
        texts: list[Any] = []
        for search in searches:
            seen = [number for number, _ in search.found if number in hidden]
            labels = dict.fromkeys(shown_by[number] for number, _ in search.found if number in shown_by)
            if search is unchanged[-1] and (found or not seen):
                texts.append(_shaped(written, self._memory, blocks=search.blocks))
                continue
            if labels or seen:
                line = pointer(labels, _COMPACTED) if labels else pointer(seen)
            else:
                line = omitted(len(search.found)) if search.found else NOTHING
            lines = Written("", [], [], []).with_lines(line, search.note)
            texts.append(_shaped(lines, self._memory, blocks=search.blocks))
        return texts


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


def _shaped(written: Written, memory: Memory, *, blocks: bool) -> str | list[dict[str, Any]]:
    """A result in the form of its search."""
    if not blocks:
        return written.text
    sources = {part.number: memory.chunks[part.number - 1].source for part in written.parts if part.number}
    return numbered_blocks(written.parts, sources)


def _checksum(text: str) -> int:
    # At most 53 bits, since JSON readers may round larger integers.
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).digest())
