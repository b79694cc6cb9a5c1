"""Getting the vectors that thresholds need: from the chunk, the store, a cache, and only then from the embedder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from textwrap import shorten
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oprag.assembly import ContextOptions
from oprag.chunk import Chunk, fill
from oprag.errors import EmbeddingError, OpragError
from oprag.given import ContextInputs
from oprag.masking import describe, error_text
from oprag.steps import Step, Steps
from oprag.vectors.once import embedded_once
from oprag.vectors.rows import Known, check_rows, name_of, rows_of
from oprag.vectors.sources import Record, StoreReader, VectorSources

__all__ = ["chunks_with_vectors", "given_with_vectors", "question_vector"]


def given_with_vectors(
    given: ContextInputs, question: str, context_options: ContextOptions, sources: VectorSources
) -> Steps[ContextInputs]:
    """What a context with thresholds is made of.

    Args:
        given: The retrieved chunks, and the vector of the question where the search needed it before.
        question: The question.
        context_options: The options.
        sources: Where vectors come from.

    Raises:
        EmbeddingError: A vector cannot be had or cannot be used.
    """
    chunks, vector = given.chunks, given.question_vector
    if vector is None and chunks and context_options.similarity_threshold is not None:
        vector = yield from question_vector(question, sources)
    # No vector is made for what is no candidate.
    candidates = yield from chunks_with_vectors(chunks[: context_options.max_candidates], sources)
    return replace(given, chunks=[*candidates, *chunks[len(candidates) :]], question_vector=vector)


def question_vector(question: str, sources: VectorSources) -> Steps[NDArray[np.float32]]:
    """The vector of a question, of shape (dimension,): from the cache, else from the embedder.

    Raises:
        EmbeddingError: There is no embedder, it fails, or its vector cannot be used.
    """
    if sources.embedder is None:
        raise EmbeddingError(
            f"similarity_threshold needs the vector of the question; give {sources.embedder_option}=", None
        )
    vectors = yield from embedded_once(sources.embedder, sources.cache, "question", {question: question})
    return vectors[question].vector


def chunks_with_vectors(chunks: Sequence[Chunk], sources: VectorSources) -> Steps[list[Chunk]]:
    """The chunks with their vectors, each from the first source that has it.

    Args:
        chunks: Chunks that were made for this question, some of which may have vectors already; the others are filled
            in.
        sources: Where the others come from.

    Raises:
        EmbeddingError: A vector cannot be had or cannot be used.
    """
    by_rank = {chunk.rank: chunk for chunk in chunks}
    known = {chunk.rank: Known(chunk.vector, "the chunk itself") for chunk in chunks if chunk.vector is not None}
    store = sources.store
    if store is not None:
        known |= yield from _in_store([chunk for chunk in chunks if chunk.rank not in known], store, sources.text_of)
    # A picture has no text, and what stands about it in the metadata is not what it shows.
    missing = [chunk for chunk in chunks if chunk.rank not in known and chunk.text.strip()]
    if missing:
        known |= yield from _made(missing, sources)
    if len({len(one.vector) for one in known.values()}) > 1:
        raise _mixed(chunks, known)
    for rank, one in known.items():
        fill(by_rank[rank], vector=one.vector)
    return list(chunks)


def _in_store(chunks: Sequence[Chunk], store: StoreReader, text_of: Callable[[Chunk], str]) -> Steps[dict[int, Known]]:
    """The vectors that the store holds of these chunks."""
    keyed = [(chunk, key) for chunk in chunks if (key := store.key_of(chunk)) is not None]
    if not keyed:
        return {}
    keys = list(dict.fromkeys(key for _, key in keyed))
    aread, origin = store.aread, f"the store {store.name}"
    try:
        records = yield Step(lambda: store.read(keys), None if aread is None else lambda: aread(keys))
    except Exception as error:
        raise _unread(origin, keyed[0][0], len(keys), error) from error
    if not isinstance(records, Mapping) or not all(isinstance(record, Record) for record in records.values()):
        raise EmbeddingError(f"the adapter of {origin} must give a mapping of keys to oprag Records", records)
    if strange := set(records).difference(keys):
        raise EmbeddingError(
            f"{origin} was asked for the vectors of {len(keys)} chunks and gave one of {describe(min(strange))}, which "
            "is not among them; is it another collection?",
            min(strange),
        )
    # A chunk whose text was changed behind the search needs a vector of its own.
    used = [
        (chunk, record.vector)
        for chunk, key in keyed
        if (record := records.get(key)) is not None
        and record.vector is not None
        and record.text in (None, chunk.text, text_of(chunk))
    ]
    rows = _rows_of(used, origin)
    return {chunk.rank: Known(row, origin) for (chunk, _), row in zip(used, rows, strict=True)}


def _rows_of(given: Sequence[tuple[Chunk, Any]], origin: str) -> Sequence[NDArray[np.float32]]:
    """The vectors of chunks, checked; all at once, and one by one to find out which of them is at fault."""
    if not given:
        return []
    with suppress(EmbeddingError):
        rows = rows_of([vector for _, vector in given], len(given), origin)
        check_rows(rows, [chunk for chunk, _ in given], origin)
        return list(rows)
    one_by_one: list[NDArray[np.float32]] = []
    for chunk, vector in given:
        rows = rows_of([vector], 1, origin, f"the vector of {name_of(chunk)}")
        check_rows(rows, [chunk], origin)
        one_by_one.append(rows[0])
    return one_by_one


def _made(chunks: Sequence[Chunk], sources: VectorSources) -> Steps[dict[int, Known]]:
    """The vectors of chunks from the cache, else from the embedder, which is asked once for each text."""
    if sources.embedder is None:
        chunk = chunks[0]
        where = "" if sources.store is None else f" in the store {sources.store.name}"
        raise EmbeddingError(
            f"{len(chunks)} of the retrieved chunks have no vector{where}, the first one is {chunk.label()}; give "
            f"{sources.embedder_option}=, which makes them",
            chunk,
        )
    of_text: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        of_text.setdefault(sources.text_of(chunk), []).append(chunk)
    wanted = {text: same[0] for text, same in of_text.items()}
    vectors = yield from embedded_once(sources.embedder, sources.cache, "document", wanted)
    return {chunk.rank: vectors[text] for text, same in of_text.items() for chunk in same}


def _unread(origin: str, first: Chunk, count: int, error: Exception) -> OpragError:
    if isinstance(error, OpragError):
        return error
    # Clients of stores write all ids that were asked for into their messages.
    text = shorten(error_text(error), 300)
    what = f"the vectors of {count} chunks, the first of them {first.label()},"
    return EmbeddingError(f"{origin} failed to give {what} with {type(error).__name__}: {text}", first)


def _mixed(chunks: Iterable[Chunk], known: Mapping[int, Known]) -> EmbeddingError:
    """What is wrong with vectors of several dimensions, and where they come from."""
    having = [(chunk, known[chunk.rank]) for chunk in chunks if chunk.rank in known]
    first, one = having[0]
    other, another = next(pair for pair in having if len(pair[1].vector) != len(one.vector))
    return EmbeddingError(
        f"the vector of a chunk ({other.label()}) from {another.origin} has dimension {len(another.vector)}, that of "
        f"another ({first.label()}) from {one.origin} has {len(one.vector)}; vectors of different embedders cannot be "
        "compared",
        other,
    )
