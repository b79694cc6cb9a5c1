"""From retrieved chunks to a context: `build_context`, the `Context` that it returns, and what that was made of."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from oprag.assembly.budget import fit
from oprag.assembly.neighbors import NeighborReader, fill_in
from oprag.assembly.order import in_order
from oprag.assembly.render import Show, passages_of, render
from oprag.assembly.select import select
from oprag.assembly.stitch import Passage
from oprag.chunk import Chunk, Drop, Vector, chunk_to_dict, counted, sorted_by_rank
from oprag.errors import EmbeddingError, OptionError
from oprag.options import ContextOptions, as_context_options
from oprag.positions.placing import Placed, SourceReport, place, warn_about, without_order
from oprag.tokens import approximate_tokens, count

if TYPE_CHECKING:
    from oprag.steps import Steps

__all__ = ["Context", "ContextInputs", "assemble", "assemble_in_steps", "build_context"]


@dataclass(frozen=True, eq=False)
class ContextInputs:
    """Everything that a context is made of beside its options, so that it can be made again with others.

    Attributes:
        chunks: All chunks that were retrieved, best first.
        question_vector: The vector of the question, of shape (dimension,), where it is known.
        read_neighbors: Returns the chunks around one, where it is known.
        show: Writes a passage as the framework will show it; the token budget then counts that text.
        place_each: Whether a single chunk of a source needs its place too, since those of other searches follow.
        neighbors: The chunks that were read around one, by its rank and their number.
        placed: The chunks with their source and position, by the options that matter for these; found once, however
            often the context is made again.
    """

    chunks: list[Chunk]
    question_vector: Vector | None = None
    read_neighbors: NeighborReader | None = None
    show: Show | None = None
    place_each: bool = False
    neighbors: dict[tuple[int, int], list[Chunk]] = field(default_factory=dict)
    placed: dict[Any, Placed] = field(default_factory=dict)

    @property
    def reader(self) -> Callable[[Chunk, int], Sequence[Chunk]] | None:
        """Reads the chunks around one, once, however often the context is made again."""
        return None if self.read_neighbors is None and not self.neighbors else self._read

    def without_order(self, options: ContextOptions, *, by_store: bool = False) -> list[list[Chunk]]:
        """The chunks of each source whose order is not known, where the options ask for that order.

        Args:
            options: The options.
            by_store: Whether numbers that were written from the sequence of a store count as not known.
        """
        if options.order != "source" or options.position_key is not None:
            return []
        # Neighbors are read around single chunks, too.
        least = 1 if options.neighbors or self.place_each else 2
        return without_order(self.place(options), least=least, by_store=by_store)

    def place(self, options: ContextOptions) -> Placed:
        """The chunks with their source and position, found once for these options."""
        keys = _keys(options)
        if keys not in self.placed:
            self.placed[keys] = place(self.chunks, options.source_key, options.position_key)
        return self.placed[keys]

    def _read(self, chunk: Chunk, number: int) -> Sequence[Chunk]:
        key = chunk.rank, number
        if key not in self.neighbors:
            if self.read_neighbors is None:
                raise OptionError(
                    f"the neighbours of a chunk ({chunk.label()}) were not read before, and what reads them stayed in "
                    "another process",
                    number,
                )
            self.neighbors[key] = list(self.read_neighbors(chunk, number))
        return self.neighbors[key]

    def __getstate__(self) -> dict[str, Any]:
        # What reads neighbours often holds a connection; a copy in another process does without.
        return {**self.__dict__, "read_neighbors": None, "placed": {}}


def _keys(options: ContextOptions) -> Any:
    """The options that matter for `ContextInputs.place`; with vectors, chunks are given their similarities."""
    return options.source_key, options.position_key, options.needs_vectors


class Unchanged(Enum):
    """Says that an option stays as it was, where None means something else."""

    UNCHANGED = "unchanged"


UNCHANGED = Unchanged.UNCHANGED


@dataclass(frozen=True)
class Context:
    """The text that the model will read, and what was dropped.

    Its repr is one line of counts; notebooks show a table of the passages. `print(context)` gives the whole text, and
    `explain()` says how it came to be.

    Attributes:
        kept: The chunks that are in it, in order, each with `source`, `position` and `span`.
        dropped: The chunks that are not, best first, each with the reason and the figure that decided.
        sources: How the chunks of each source were placed.
        options: The options that it was made with.
        charged: The tokens that the kept chunks were charged one by one; None without a token budget.
        inputs: What it was made of, so that it can be made again; None for one that was put together by hand.
    """

    kept: tuple[Chunk, ...]
    dropped: tuple[Drop, ...]
    sources: tuple[SourceReport, ...]
    options: ContextOptions = field(repr=False)
    charged: int | None = None
    inputs: ContextInputs | None = field(default=None, compare=False, repr=False)

    @cached_property
    def passages(self) -> tuple[Passage, ...]:
        """Runs of source text, in order."""
        return tuple(passages_of(self.kept, self.options))

    @cached_property
    def text(self) -> str:
        """The rendered context, ready for a prompt."""
        return render(self.passages, self.options)

    @cached_property
    def tokens(self) -> int:
        """The tokens of `text`, by the assembly's `count_tokens`; counted when asked for.

        Raises:
            TokenizerError: `count_tokens` returned no usable count.
        """
        return count(self.text, self.options.count_tokens) if self.kept else 0

    @property
    def tokens_are_approximate(self) -> bool:
        """Whether the tokens were counted with the approximation that stands in for a real tokenizer."""
        return self.options.count_tokens is approximate_tokens

    @property
    def freed_tokens(self) -> int | None:
        """The tokens that joining chunks saved against charging them one by one; None without a token budget."""
        return None if self.charged is None else self.charged - self.tokens

    def rethreshold(
        self,
        *,
        similarity_threshold: float | Unchanged | None = UNCHANGED,
        redundancy_threshold: float | Unchanged | None = UNCHANGED,
        min_chunks: int | Unchanged = UNCHANGED,
    ) -> "Context":
        """The context of the same chunks under other thresholds, without embedding anything or asking a model.

        With `neighbors`, those of chunks that are kept for the first time are read.

        Args:
            similarity_threshold: The new one, None for none; as it was by default.
            redundancy_threshold: As `similarity_threshold`.
            min_chunks: The new one; as it was by default.

        Raises:
            OptionError: A threshold is invalid.
            EmbeddingError: The chunks have no vectors, or the question has none: no threshold that needs them was set
                when they were retrieved.
        """
        wanted = {
            "similarity_threshold": similarity_threshold,
            "redundancy_threshold": redundancy_threshold,
            "min_chunks": min_chunks,
        }
        changes: dict[str, Any] = {name: value for name, value in wanted.items() if value is not UNCHANGED}
        if self.inputs is None:
            raise OptionError("this context was put together by hand, so it cannot be made again", self)
        options = replace(self.options, **changes)
        lacking = "vectors" if options.needs_vectors and not self._has_vectors else None
        if options.similarity_threshold is not None and self.inputs.question_vector is None and self.inputs.chunks:
            lacking = lacking or "the vector of the question"
        if lacking:
            raise EmbeddingError(
                f"these chunks were retrieved without {lacking}; retrieve with similarity_threshold=-1, which keeps "
                "all of them, and decide again from there",
                self,
            )
        return assemble(self.inputs, options)

    @property
    def _has_vectors(self) -> bool:
        candidates = [] if self.inputs is None else self.inputs.chunks[: self.options.max_candidates]
        return all(chunk.vector is not None or not chunk.text.strip() for chunk in candidates)

    def explain(self) -> str:
        """A report in plain text: sources and kinds, what was kept, what was dropped and why."""
        # Loaded only for those who look.
        from oprag.context_report import report

        chunks, passages = len(self.kept), len(self.passages)
        tokens = f"{self.tokens:,} tokens"
        if self.tokens_are_approximate:
            tokens += " (approximation: UTF-8 bytes / 4)"
        if self.options.token_budget is not None:
            tokens += f" of {self.options.token_budget:,}"
        if self.freed_tokens:
            tokens += f", {self.freed_tokens:,} fewer than its chunks one by one"
        summary = (
            f"{chunks} chunk{'' if chunks == 1 else 's'} in {passages} passage{'' if passages == 1 else 's'}, "
            f"order {self.options.order}, {tokens}; {len(self.dropped)} dropped"
        )
        return report(summary, self.passages, self.dropped, self.sources)

    def to_dict(self) -> dict[str, Any]:
        """Everything but vectors and the framework's objects, as values that JSON can hold.

        Metadata is not part of it, since it may hold anything.
        """
        return {
            "text": self.text,
            "tokens": self.tokens,
            "tokens_are_approximate": self.tokens_are_approximate,
            "token_budget": self.options.token_budget,
            "freed_tokens": self.freed_tokens,
            "order": self.options.order,
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
            "dropped": [
                {
                    **chunk_to_dict(drop.chunk),
                    "reason": drop.reason,
                    "figure": drop.figure,
                    "detail": drop.detail,
                    "twin": drop.twin,
                }
                for drop in self.dropped
            ],
            "sources": [
                {
                    "source": report.source,
                    "kind": report.kind.name.lower(),
                    "field": report.field,
                    "chunks": report.chunks,
                    "missing": report.missing,
                    "runs": report.runs,
                }
                for report in self.sources
            ],
        }

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        reasons = Counter(drop.reason for drop in self.dropped).most_common()
        why = f" ({', '.join(f'{number:,} by {reason}' for reason, number in reasons)})" if reasons else ""
        # Counting may take long, or fail.
        tokens = f", {self.tokens:,} tokens" if "tokens" in self.__dict__ else ""
        return (
            f"Context({counted(len(self.passages), 'passage')} of {counted(len(self.sources), 'source')}, "
            f"{counted(len(self.kept), 'chunk')} kept, {len(self.dropped):,} dropped{why}{tokens})"
        )

    def _repr_html_(self) -> str:
        from oprag.context_report import passages_html

        return passages_html(repr(self), self.passages)


def build_context(
    chunks: Iterable[Chunk],
    options: ContextOptions | None = None,
    *,
    question_vector: Vector | None = None,
    read_neighbors: NeighborReader | None = None,
    **changes: Any,
) -> Context:
    r"""Make a context of retrieved chunks.

    The sequence of the steps matters: ordering comes after every cut, since in an ordered list the place of a chunk no
    longer says how good it is.

    Args:
        chunks: Chunks with distinct ranks, in any sequence; nothing given is changed.
        options: The options; those of `ContextOptions()` by default.
        question_vector: The vector of the question, of shape (dimension,), for `similarity_threshold`.
        read_neighbors: Returns the chunks around one, for `neighbors`.
        **changes: Options of `ContextOptions` to change, such as `token_budget=4096`.

    Returns:
        The context. `context.tokens <= token_budget` always holds; no chunks give an empty context.

    Raises:
        ChunkError: Something is not a chunk, or a rank occurs twice.
        OptionError: An option is unknown or invalid.
        BudgetError: Chunks were given, and not one fits `token_budget`.
        MissingPositionError: A candidate has no position, and `on_missing_position="error"`.
        TokenizerError: `count_tokens` returned no usable count.
        EmbeddingError: A threshold is set, and a vector is missing or cannot be used.

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
    """As `assemble`, in a step of its own where it reads neighbours, which may take long."""
    if not options.neighbors:
        return assemble(inputs, options)
    # Adapters have loaded it; `build_context` needs no steps.
    from oprag.steps import Step

    context: Context = yield Step(lambda: assemble(inputs, options))
    return context


def assemble(inputs: ContextInputs, options: ContextOptions) -> Context:
    """The work of `build_context`, for adapters and for deciding again."""
    placed = inputs.place(options)
    sources = placed.sources
    selected, dropped = select(placed.chunks, options, inputs.question_vector)
    if options.needs_vectors:
        # With their similarities, so that the same chunks serve every threshold.
        judged = {chunk.rank: chunk for chunk in (*selected, *(drop.chunk for drop in dropped))}
        inputs.placed[_keys(options)] = placed._replace(chunks=[judged[chunk.rank] for chunk in placed.chunks])
    if options.neighbors and selected:
        selected, dropped, sources = fill_in(inputs.chunks, selected, dropped, options, inputs.reader)
    fitted = None
    if options.token_budget is None or not selected:
        kept = in_order(selected, options)
    else:
        fitted = fit(selected, options, options.token_budget, inputs.show)
        kept = fitted.kept
        dropped += fitted.dropped
    concerned = kept
    if dropped:
        dropped.sort(key=attrgetter("chunk.rank"))
        concerned = [*kept, *(drop.chunk for drop in dropped if drop.reason == "on_missing_position")]
    warn_about(placed, concerned, options)
    charged = None if fitted is None else fitted.charged
    context = Context(tuple(kept), tuple(dropped), sources, options, charged, inputs)
    if fitted is not None:
        context.__dict__["passages"] = tuple(fitted.passages)
        # What a framework will show is another text than the context's own.
        if inputs.show is None:
            context.__dict__["tokens"] = fitted.tokens
    return context
