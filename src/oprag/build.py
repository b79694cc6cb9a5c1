"""From retrieved chunks to a context: select, budget, order, stitch, render."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from oprag.assembly import Assembly, as_assembly
from oprag.budget import fit, lay_out
from oprag.chunk import Chunk, Vector, sorted_by_rank
from oprag.context import Context
from oprag.given import Given
from oprag.neighbors import NeighborReader, fill_in
from oprag.place import warn_about
from oprag.select import select
from oprag.steps import Step, Steps

__all__ = ["assemble", "assembling", "build_context"]


def build_context(
    chunks: Iterable[Chunk],
    assembly: Assembly | None = None,
    *,
    question_vector: Vector | None = None,
    read_neighbors: NeighborReader | None = None,
    **options: Any,
) -> Context:
    r"""Make a context of retrieved chunks.

    The sequence of the steps matters: ordering comes after every cut, since in an ordered list the place of a chunk no
    longer says how good it is.

    Args:
        chunks: Chunks with distinct ranks, in any sequence; nothing given is changed.
        assembly: The options; those of `Assembly()` by default.
        question_vector: The vector of the question, of shape (dimension,), for `similarity_threshold`.
        read_neighbors: Gives the chunks around one, for `neighbors`.
        **options: Options of `Assembly` to change, such as `token_budget=4096`.

    Returns:
        The context. `context.tokens <= token_budget` always holds; no chunks give an empty context.

    Raises:
        ChunkError: Something is no chunk, or a rank occurs twice.
        OptionError: An option is unknown or has a value that it cannot have.
        BudgetError: Chunks were given, and not one fits `token_budget`.
        MissingPositionError: A candidate has no position, and `missing_position="error"`.
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
    return assemble(Given(sorted_by_rank(chunks), question_vector, read_neighbors), as_assembly(assembly, options))


def assembling(given: Given, assembly: Assembly) -> Steps[Context]:
    """As `assemble`, as a step of its own where it may take long: neighbours are read from anywhere."""
    if not assembly.neighbors:
        return assemble(given, assembly)
    context: Context = yield Step(lambda: assemble(given, assembly))
    return context


def assemble(given: Given, assembly: Assembly) -> Context:
    """The work of `build_context`, for adapters and for deciding again."""
    placed = given.place(assembly)
    sources = placed.sources
    selected, dropped = select(placed.chunks, assembly, given.question_vector)
    if assembly.neighbors and selected:
        selected, dropped, sources = fill_in(given.chunks, selected, dropped, assembly, given.reader)
    charged = tokens = None
    if assembly.token_budget is None or not selected:
        layout = lay_out(selected, assembly)
    else:
        layout, tokens, charged, over = fit(selected, assembly, assembly.token_budget, given.show)
        dropped += over
    missing = [drop.chunk for drop in dropped if drop.reason == "missing_position"]
    warn_about(placed, [*layout.chunks, *missing], assembly)
    dropped.sort(key=lambda drop: drop.chunk.rank)
    context = Context(
        passages=tuple(layout.passages),
        kept=tuple(layout.chunks),
        dropped=tuple(dropped),
        sources=sources,
        assembly=assembly,
        charged=charged,
        given=given,
    )
    # What a framework will show is another text than the context's own.
    if tokens is not None and given.show is None:
        context.__dict__["tokens"] = tokens
    return context
