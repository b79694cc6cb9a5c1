"""Build a context from retrieved chunks: `build_context`, its inputs and the `Context` that it returns."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from oprag._internal.tokens import approximate_tokens, count
from oprag._internal.warn import warn
from oprag.chunk import Chunk, Drop, Passage, Vector, chunk_to_dict, counted, sorted_by_rank
from oprag.errors import EmbeddingError, OptionError, RetrievalWarning
from oprag.options import ContextOptions, as_context_options
from oprag.pipeline.budget import fit
from oprag.pipeline.continuity import Values
from oprag.pipeline.headings import with_sections
from oprag.pipeline.neighbors import NeighborReader, add_neighbors
from oprag.pipeline.order import in_order
from oprag.pipeline.render import Show, passages_of, render, section_of
from oprag.pipeline.select import select, warn_about_copies
from oprag.positions.retrieved import (
    Doubt,
    Placed,
    SearchedStore,
    SourceReport,
    Undecided,
    place,
    undecided,
    warn_about,
)
from oprag.positions.source_order import Certainty

if TYPE_CHECKING:
    from oprag._internal.sync_async import Steps

__all__ = ["Context", "ContextInputs", "assemble", "assemble_in_steps", "build_context"]


@dataclass(frozen=True, eq=False)
class ContextInputs:
    """The inputs of a context other than its options, kept so that it can be rebuilt with different options."""

    chunks: list[Chunk]  # all retrieved chunks, best first
    question_vector: Vector | None = None  # of shape (dimension,), if available
    read_neighbors: NeighborReader | None = None  # returns the chunks around a given one, if available
    # Formats a passage as the framework will show it; the token budget then counts that text.
    show: Show | None = None
    store: Callable[[], SearchedStore] = SearchedStore  # describes the store that was searched, for warnings
    # Whether a source needs its order even if only one of its chunks was retrieved, because chunks from later
    # searches are placed next to it.
    place_each: bool = False
    # Cache of neighbors, by the rank of the chunk and the number of neighbors on each side.
    neighbors: dict[tuple[int, int], list[Chunk]] = field(default_factory=dict)
    # Cache of the chunks with their source and position, by the options that affect these.
    placed: dict[Any, Placed] = field(default_factory=dict)
    # Cache of the sections in each source, by the options that affect these.
    sections: dict[Any, dict[str, str]] = field(default_factory=dict)

    @property
    def reader(self) -> Callable[[Chunk, int], Sequence[Chunk]] | None:
        """Returns the chunks around a given one, cached across rebuilds of the context; None if not available."""
        return None if self.read_neighbors is None and not self.neighbors else self._read

    def undecided(self, options: ContextOptions) -> list[Undecided]:
        """The sources whose order their retrieved chunks do not determine; none if the options do not need it."""
        by_position = options.order == "source" or options.continuity or options.reads_around
        if options.position_key is not None or not (by_position or options.on_missing_position != "last"):
            return []
        # With chunks around it, a single chunk needs a position, too.
        return undecided(self.place(options), minimum=1 if options.reads_around or self.place_each else 2)

    def place(self, options: ContextOptions, known: Placed | None = None) -> Placed:
        """The chunks with their source and position, cached by options; `known` if they were placed before."""
        key = _placement_key(options)
        if key not in self.placed:
            self.placed[key] = known or place(self.chunks, options.source_key, options.position_key)
        return self.placed[key]

    def _read(self, chunk: Chunk, number: int) -> Sequence[Chunk]:
        key = chunk.rank, number
        if key not in self.neighbors:
            if self.read_neighbors is None:
                raise OptionError(
                    f"cannot read the neighbors of a chunk ({chunk.label()}): read_neighbors is not copied to another "
                    "process, and they were not read before; rebuild the context in the process that retrieved it",
                    number,
                )
            self.neighbors[key] = list(self.read_neighbors(chunk, number))
        return self.neighbors[key]

    def read_once(self, chunk: Chunk, number: int) -> Sequence[Chunk]:
        """Return the chunks around a given one without caching them; none if they cannot be read."""
        known = self.neighbors.get((chunk.rank, number))
        return known or ([] if self.read_neighbors is None else list(self.read_neighbors(chunk, number)))

    def __getstate__(self) -> dict[str, Any]:
        # `read_neighbors` and the store often hold a connection, which cannot be pickled.
        return {**self.__dict__, "read_neighbors": None, "store": partial(SearchedStore, *self.store()), "placed": {}}


def _placement_key(options: ContextOptions) -> Any:
    """Cache key of `ContextInputs.place`; includes `needs_vectors`, since thresholds add similarities to the chunks."""
    return options.source_key, options.position_key, options.needs_vectors


class Unchanged(Enum):
    """Default of arguments for which None is a value: keep the current option."""

    UNCHANGED = "unchanged"


UNCHANGED = Unchanged.UNCHANGED


@dataclass(frozen=True)
class Context:
    """The text for the model, with the kept and the dropped chunks.

    The repr is one line of counts, `print(context)` prints the full text, and `explain()` reports how the context was
    built.

    Attributes:
        kept: The chunks in the context, in order, each with `source`, `position` and `span`.
        dropped: The other retrieved chunks, best first, each with the reason and the deciding number.
        sources: How the positions of each source's chunks were determined.
        options: The options of the context.
        charged: Sum of the tokens of the kept chunks, each counted separately; None without a token budget.
        inputs: The inputs, for rebuilding the context; None if it was constructed manually.
        certainty: How certain the order of the kept chunks is, where a source has several: "known" if two witnesses
            agree on it or one determines it, "assumed" if nothing confirms it, "unknown" if rank decides somewhere.
        doubts: Why the order is uncertain, each with its chunks. They cause the warnings.
        values: With `continuity`, the values by which the chunks were chosen; None without it.
    """

    kept: tuple[Chunk, ...]
    dropped: tuple[Drop, ...]
    sources: tuple[SourceReport, ...]
    options: ContextOptions = field(repr=False)
    charged: int | None = None
    inputs: ContextInputs | None = field(default=None, compare=False, repr=False)
    certainty: Certainty = "known"
    doubts: tuple[Doubt, ...] = field(default=(), compare=False, repr=False)
    values: Values | None = field(default=None, compare=False, repr=False)

    @cached_property
    def passages(self) -> tuple[Passage, ...]:
        """The passages (contiguous runs of source text), in order."""
        return tuple(passages_of(self.kept, self.options))

    @cached_property
    def lifted(self) -> dict[int, tuple[int, ...]]:
        """With `continuity`, the kept chunks that are not among the first by rank.

        Maps the rank of each one to the ranks of the candidates around it that lifted it, the nearest first.
        """
        return {} if self.values is None else self.values.lifted(self.kept)

    @cached_property
    def text(self) -> str:
        """The rendered context, ready for a prompt."""
        return render(self.passages, self.options)

    @cached_property
    def tokens(self) -> int:
        """Number of tokens of `text`, by the option `count_tokens`; counted on first access.

        Raises:
            TokenizerError: `count_tokens` returned no usable count.
        """
        return count(self.text, self.options.count_tokens) if self.kept else 0

    @property
    def tokens_are_approximate(self) -> bool:
        """Whether the tokens were counted with `approximate_tokens`, the default, instead of a real tokenizer."""
        return self.options.count_tokens is approximate_tokens

    @property
    def freed_tokens(self) -> int | None:
        """Number of tokens saved by joining chunks instead of counting each separately; None without a token budget."""
        return None if self.charged is None else self.charged - self.tokens

    def with_thresholds(
        self,
        *,
        similarity_threshold: float | Unchanged | None = UNCHANGED,
        redundancy_threshold: float | Unchanged | None = UNCHANGED,
        min_chunks: int | Unchanged = UNCHANGED,
    ) -> "Context":
        """Rebuild the context from the same chunks with different thresholds, without embedding or model calls.

        With `neighbors`, the neighbors of newly kept chunks are read.

        Args:
            similarity_threshold: The new threshold; None removes it. Unchanged by default.
            redundancy_threshold: The new threshold; None removes it. Unchanged by default.
            min_chunks: The new minimum number of chunks. Unchanged by default.

        Raises:
            OptionError: A threshold is invalid, or the context was constructed manually.
            EmbeddingError: The chunks or the question have no vectors, because no threshold that needs them was set
                at retrieval.
        """
        given = {
            "similarity_threshold": similarity_threshold,
            "redundancy_threshold": redundancy_threshold,
            "min_chunks": min_chunks,
        }
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not UNCHANGED}
        if self.inputs is None:
            raise OptionError(
                "cannot rebuild a context that was constructed manually; use one from build_context or a retriever",
                self,
            )
        try:
            return assemble(self.inputs, replace(self.options, **changes))
        except EmbeddingError as error:
            how = "to have all vectors, retrieve with similarity_threshold=-1, and then call with_thresholds"
            raise EmbeddingError(f"{error}; {how}", error.value) from error

    def explain(self) -> str:
        """Plain-text report: how positions were determined, the kept chunks, and the dropped chunks with reasons."""
        # Imported only when a report is needed.
        from oprag.pipeline.context_report import report

        chunks, passages = len(self.kept), len(self.passages)
        budget = "" if self.options.token_budget is None else f" of {self.options.token_budget:,}"
        tokens = f"{self.tokens:,}{budget} tokens"
        if self.tokens_are_approximate:
            tokens += " (approximation: UTF-8 bytes / 4)"
        if self.freed_tokens:
            tokens += f", {self.freed_tokens:,} saved by joining chunks"
        certainty = f" ({self.certainty})" if self.doubts else ""
        summary = (
            f"{chunks} chunk{'' if chunks == 1 else 's'} in {passages} passage{'' if passages == 1 else 's'}, "
            f"order {self.options.order}{certainty}, {tokens}; {len(self.dropped)} dropped"
        )
        return report(summary, self.passages, self.dropped, self.sources, self.values)

    def to_dict(self) -> dict[str, Any]:
        """JSON-serializable values, without vectors, metadata and framework objects.

        Metadata is omitted because its values may not be serializable.
        """
        return {
            "text": self.text,
            "tokens": self.tokens,
            "tokens_are_approximate": self.tokens_are_approximate,
            "token_budget": self.options.token_budget,
            "freed_tokens": self.freed_tokens,
            "order": self.options.order,
            "certainty": self.certainty,
            "doubts": [doubt.what for doubt in self.doubts],
            "passages": [
                {
                    "source": passage.source,
                    "spans": [span._asdict() for span in passage.spans],
                    "ranks": [chunk.rank for chunk in passage.chunks],
                    "text": passage.text,
                }
                for passage in self.passages
            ],
            "kept": [chunk_to_dict(chunk) for chunk in self.kept],
            "lifted": {rank: list(around) for rank, around in self.lifted.items()},
            "dropped": [
                {
                    **chunk_to_dict(drop.chunk),
                    **{name: value for name, value in drop._asdict().items() if name != "chunk"},
                    "displaced_by": [] if self.values is None else self.values.displaced_by(drop, list(self.lifted)),
                }
                for drop in self.dropped
            ],
            "sources": [{**one._asdict(), "kind": one.kind.name.lower()} for one in self.sources],
        }

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        reasons = Counter(drop.reason for drop in self.dropped).most_common()
        why = f" ({', '.join(f'{number:,} by {reason}' for reason, number in reasons)})" if reasons else ""
        # Only if already counted: counting may be slow, or raise.
        tokens = f", {self.tokens:,} tokens" if "tokens" in self.__dict__ else ""
        return (
            f"Context({counted(len(self.passages), 'passage')} of {counted(len(self.sources), 'source')}, "
            f"{counted(len(self.kept), 'chunk')} kept, {len(self.dropped):,} dropped{why}{tokens})"
        )


def build_context(
    chunks: Iterable[Chunk],
    options: ContextOptions | None = None,
    *,
    question_vector: Vector | None = None,
    read_neighbors: NeighborReader | None = None,
    **changes: Any,
) -> Context:
    r"""Build a context from retrieved chunks.

    Chunks are ordered after all steps that drop chunks, since those steps rely on rank.

    Args:
        chunks: Chunks with distinct ranks, in any order; the inputs are not modified.
        options: The options; `ContextOptions()` by default.
        question_vector: Vector of the question, of shape (dimension,), for `similarity_threshold`.
        read_neighbors: Returns the chunks around a given one, for `neighbors` and for `{section}` in the header.
        **changes: Options of `ContextOptions` to override, such as `token_budget=4096`.

    Returns:
        The context, with `context.tokens <= token_budget`; empty if `chunks` is empty.

    Raises:
        ChunkError: An element is not a chunk, or two chunks have the same rank.
        OptionError: An option is unknown or invalid.
        BudgetError: None of the given chunks fits `token_budget`.
        MissingPositionError: A candidate has no position, and `on_missing_position="error"`.
        TokenizerError: `count_tokens` returned no usable count.
        EmbeddingError: A threshold is set, and a vector is missing or unusable.

    Example:
        >>> hits = [Chunk("three. ", rank=0, source="book", metadata={"start_index": 10}),
        ...         Chunk("one. ", rank=1, source="book", metadata={"start_index": 0}),
        ...         Chunk("two. ", rank=2, source="book", metadata={"start_index": 5})]
        >>> build_context(hits).text
        'one. two. three. '
        >>> build_context(hits, k=2, gap="[...]").text
        'one. \n\n[...]\n\nthree. '
    """
    return assemble(
        ContextInputs(sorted_by_rank(chunks), question_vector, read_neighbors), as_context_options(options, changes)
    )


def assemble_in_steps(inputs: ContextInputs, options: ContextOptions) -> "Steps[Context]":
    """Like `assemble`, as a separate step if neighbors or headings are read, which may block."""
    if not options.reads_sources:
        return assemble(inputs, options)
    # Imported here, since `build_context` does not need it; adapters have imported it already.
    from oprag._internal.sync_async import Step

    context: Context = yield Step(lambda: assemble(inputs, options))
    missing = options.shows_section and inputs.show is None and inputs.read_neighbors is None
    if missing and context.kept and not any(map(section_of, context.kept)):
        warn(
            "{section} in header= is empty: no metadata names a section, and the sources cannot be read for their "
            "headings; pass read_neighbors=...",
            RetrievalWarning,
            cause="sections that cannot be read",
        )
    return context


def assemble(inputs: ContextInputs, options: ContextOptions) -> Context:
    """Build or rebuild a context; the implementation of `build_context`, `with_thresholds` and the adapters."""
    placed = inputs.place(options)
    sources = placed.sources
    selected, dropped, values = select(placed.chunks, options, inputs.question_vector)
    if options.needs_vectors:
        # Cached with their similarities, for rebuilding with other thresholds.
        by_rank = {chunk.rank: chunk for chunk in (*selected, *(drop.chunk for drop in dropped))}
        inputs.placed[_placement_key(options)] = placed._replace(
            chunks=[by_rank[chunk.rank] for chunk in placed.chunks]
        )
    whole: frozenset[str | None] = frozenset()
    if options.reads_around and selected:
        added = add_neighbors(inputs.chunks, selected, dropped, options, inputs.reader)
        selected, dropped, sources, orders, whole = added
        placed = placed._replace(orders={**placed.orders, **orders})
    if options.shows_section and inputs.show is None:
        # Before the budget, since headers count.
        selected = with_sections(selected, options, inputs.read_once, inputs.sections)
    fitted = None
    if options.token_budget is None or not selected:
        kept = in_order(selected, options)
    else:
        fitted = fit(selected, options, options.token_budget, inputs.show, whole)
        kept = fitted.kept
        dropped += fitted.dropped
    dropped.sort(key=attrgetter("chunk.rank"))
    warn_about_copies(placed.chunks, dropped, options.k)
    affected = [*kept, *(drop.chunk for drop in dropped if drop.reason == "on_missing_position")]
    found, certainty = warn_about(placed, affected, options, inputs.store)
    charged = None if fitted is None else fitted.charged
    context = Context(tuple(kept), tuple(dropped), sources, options, charged, inputs, certainty, tuple(found), values)
    if fitted is not None:
        context.__dict__["passages"] = tuple(fitted.passages)
        # `fitted.tokens` counts the text that the framework shows, which differs from the context's own.
        if inputs.show is None:
            context.__dict__["tokens"] = fitted.tokens
    return context
