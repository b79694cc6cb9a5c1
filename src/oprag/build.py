"""From retrieved chunks to a context: select, budget, order, stitch, render."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from oprag.assembly import ContextOptions, as_context_options
from oprag.budget import fit, lay_out
from oprag.chunk import Chunk, Vector, sorted_by_rank
from oprag.context import Context
from oprag.given import ContextInputs
from oprag.neighbors import NeighborReader, fill_in
from oprag.place import warn_about
from oprag.select import select
from oprag.steps import Step, Steps

__all__ = ["assemble", "assembling", "build_context"]


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
        read_neighbors: Gives the chunks around one, for `neighbors`.
        **changes: Options of `ContextOptions` to change, such as `token_budget=4096`.

    Returns:
        The context. `context.tokens <= token_budget` always holds; no chunks give an empty context.

    Raises:
        ChunkError: Something is no chunk, or a rank occurs twice.
        OptionError: An option is unknown or has a value that it cannot have.
        BudgetError: Chunks were given, and not one fits `token_budget`.
        MissingPositionError: A candidate has no position, and `on_missing_position="error"`.
        TokenizerError: `count_tokens` gave no usable count.
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


def assembling(inputs: ContextInputs, options: ContextOptions) -> Steps[Context]:
    """As `assemble`, as a step of its own where it may take long: neighbours are read from anywhere."""
    if not options.neighbors:
        return assemble(inputs, options)
    context: Context = yield Step(lambda: assemble(inputs, options))
    return context


def assemble(inputs: ContextInputs, options: ContextOptions) -> Context:
    """The work of `build_context`, for adapters and for deciding again."""
    placed = inputs.place(options)
    sources = placed.sources
    selected, dropped = select(placed.chunks, options, inputs.question_vector)
    if options.neighbors and selected:
        selected, dropped, sources = fill_in(inputs.chunks, selected, dropped, options, inputs.reader)
    charged = tokens = None
    if options.token_budget is None or not selected:
        layout = lay_out(selected, options)
    else:
        layout, tokens, charged, over = fit(selected, options, options.token_budget, inputs.show)
        dropped += over
    missing = [drop.chunk for drop in dropped if drop.reason == "on_missing_position"]
    warn_about(placed, [*layout.chunks, *missing], options)
    dropped.sort(key=lambda drop: drop.chunk.rank)
    context = Context(
        passages=tuple(layout.passages),
        kept=tuple(layout.chunks),
        dropped=tuple(dropped),
        sources=sources,
        options=options,
        charged=charged,
        inputs=inputs,
    )
    # What a framework will show is another text than the context's own.
    if tokens is not None and inputs.show is None:
        context.__dict__["tokens"] = tokens
    return context
