"""One ordered context for many searches of an agent: deduplicated, numbered, in the order of the sources."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, Self, get_args

from oprag._internal.masking import describe, masked_error
from oprag.agents.cited import Cited, cited_by
from oprag.agents.identity import kept_chunks
from oprag.agents.layouts import Layout, as_content, check_layout, write_compact, write_delta, write_deltas
from oprag.agents.memory import Memory
from oprag.agents.numbered_text import clean_note, passage_of
from oprag.agents.search_result_blocks import Form, checksum
from oprag.agents.whole_context import combined, write_combined, write_source
from oprag.chunk import Chunk, Passage, changed, counted
from oprag.context import Context
from oprag.errors import DataError, OptionError
from oprag.options import NO_SEARCH, ContextOptions, as_context_options, check_choice, check_text
from oprag.pipeline.stitch import span_in_source

__all__ = ["Delta", "WorkingContext"]


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
            written when it changes; `stitch`, `separator` and `gap` apply to `context()`. The options of a search (k,
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
        >>> working.cited("The end [2], as told in [7].").unknown
        (7,)
    """

    def __init__(self, options: ContextOptions | None = None, **changes: Any) -> None:
        self._options = as_context_options(options, changes)
        for name, default in NO_SEARCH.items():
            if (value := getattr(self._options, name)) != default:
                raise OptionError(
                    f"{name}={describe(value)} is an option of a search, not of a working context; set it on the "
                    "retriever",
                    value,
                )
        self._memory = Memory()

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
        given = kept_chunks(chunks, self._options)
        memory = self._memory.copy()
        unused = (name for name in map(str, itertools.count(len(memory.searches) + 1)) if name not in memory.searches)
        numbers, found = memory.gather(next(unused) if search is None else search, given)
        found = replace(found, note=clean_note(note), blocks=content == "search_result")
        written = write_delta(memory, self._options, found, memory.visible(), self.tokens)
        shaped = as_content(memory, found, written)
        its = replace(found, shown=written.shown, tokens=written.tokens)
        memory.add(replace(its, checksum=checksum(shaped)))
        self._memory = memory
        ranks, shown = dict(found.found), {*written.shown, *written.over_budget}
        return Delta(
            written.text,
            shaped,
            tuple(ranks),
            tuple(written.shown),
            tuple(number for number in ranks if number not in shown),
            tuple(number for number in ranks if number in written.over_budget),
            {chunk.rank: number for (chunk, _), number in zip(given, numbers, strict=True)},
            written.tokens,
        )

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
        added, verified = self._memory.searches.get(search), self._memory.verified
        if added is None or not isinstance(content, str | list):
            return False
        if verified.get(added.checksum) != content and added.checksum != checksum(content):
            return False
        if isinstance(content, str):
            verified[added.checksum] = content
        return True

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
        compact = layout == "compact" and sum(added[name].tokens for name in names) > compact_above
        write = partial(write_compact, redacted=frozenset(changed)) if compact else write_deltas
        results = write(self._memory, self._options, [added[name] for name in names])
        return [as_content(self._memory, search, written) for search, written in results]

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
        return combined(self._memory, self._options, changes, range(1, len(self) + 1))[0]

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
        shown = {number for search in self._memory.searches.values() for number in search.shown}

        @cache
        def everything() -> frozenset[int]:
            return frozenset(write_combined(self._memory, self._options, range(1, len(self) + 1)).shown)

        def passage_shown(number: int) -> Passage | None:
            is_shown = 1 <= number <= len(self) and (number in shown or number in everything())
            return passage_of(self.chunk(number)) if is_shown else None

        return cited_by(answer, passage_shown)

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
        memory, index = self._memory, number - 1
        return changed(memory.chunks[index], rank=memory.ranks[index], span=span_in_source(memory.placed[index].span))

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
