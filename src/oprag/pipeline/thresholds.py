"""Apply the similarity and redundancy thresholds."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oprag.chunk import Chunk, Drop, Vector, changed
from oprag.embedding.cosine import unit_rows, usable_rows
from oprag.errors import EmbeddingError
from oprag.options import ContextOptions
from oprag.pipeline.continuity import Values

__all__ = ["apply_thresholds", "find_repeats"]

# Number of rows that are compared with all kept rows at once; comparing all rows at once would take quadratic memory.
_BLOCK = 256


def find_repeats(vectors: NDArray[np.float32], threshold: float) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Find redundant rows: those whose cosine similarity to an earlier kept row is at least the threshold.

    Returns for each row the index of the most similar kept row (-1 if it is kept) and their cosine similarity (0).
    Takes O(rows × kept rows) time and O(rows) memory.
    """
    rows = len(vectors)
    twins = np.full(rows, -1, dtype=np.intp)
    cosines = np.zeros(rows, dtype=np.float32)
    kept = np.empty_like(vectors)
    numbers = np.empty(rows, dtype=np.intp)
    count = 0
    for start in range(0, rows, _BLOCK):
        block = vectors[start : start + _BLOCK]
        twin, cosine = twins[start : start + _BLOCK], cosines[start : start + _BLOCK]
        if count:
            nearest, cosine[:] = _nearest(block, kept[:count])
            twin[:] = np.where(cosine >= threshold, numbers[nearest], -1)
            cosine[twin < 0] = 0
        _compare_within(block, start, threshold, twin, cosine)
        new = np.flatnonzero(twin < 0)
        kept[count : count + len(new)] = block[new]
        numbers[count : count + len(new)] = start + new
        count += len(new)
    return twins, cosines


def _nearest(block: NDArray[np.float32], kept: NDArray[np.float32]) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """For each row of a block, the index of the most similar kept row and its cosine similarity."""
    products = block @ kept.T
    nearest = products.argmax(axis=1)
    return nearest, np.take_along_axis(products, nearest[:, None], axis=1)[:, 0]


def _compare_within(
    block: NDArray[np.float32], start: int, threshold: float, twin: NDArray[np.intp], cosine: NDArray[np.float32]
) -> None:
    """Update `twin` and `cosine` for rows that repeat an earlier row of the same block."""
    products = block @ block.T
    repeats = np.triu(products >= threshold, 1)
    earlier, later = np.nonzero(repeats)
    if not len(earlier):
        return
    # Row by row, since whether a row is kept depends on all rows before it. Lists are faster here, since accessing
    # single elements of an array is slow.
    twins, cosines = twin.tolist(), cosine.tolist()
    for one, other, similarity in zip(earlier.tolist(), later.tolist(), products[repeats].tolist(), strict=True):
        if twins[one] < 0 and (twins[other] < 0 or similarity > cosines[other]):
            twins[other], cosines[other] = start + one, similarity
    twin[:], cosine[:] = twins, cosines


# The computed cosine of a float32 vector with itself can be this much below 1; a threshold of 1 means equal vectors.
_TOLERANCE = 1e-6


def apply_thresholds(
    chunks: Sequence[Chunk], options: ContextOptions, question: Vector | None
) -> tuple[list[Chunk], list[Drop], Values | None]:
    """Drop chunks below the similarity threshold, then chunks that repeat a better kept one.

    Better is the one of better rank, or with continuity of higher value; the values are returned, too, if any chunk was
    compared. If fewer than `min_chunks` remain, dropped chunks are kept after all, best first, redundant ones last.
    Chunks with neither text nor vector are always kept, since they cannot be compared.
    """
    # Images and empty texts have no similarity.
    compared = [chunk for chunk in chunks if chunk.vector is not None or chunk.text.strip()]
    if not compared:
        return list(chunks), [], None
    vectors = _chunk_vectors(compared)
    below = np.zeros(len(compared), dtype=bool)
    if question is not None:
        cosines = np.clip(vectors @ _question_row(question, vectors.shape[1]), -1, 1)
        compared = [
            chunk if chunk.similarity == one else changed(chunk, similarity=one)
            for chunk, one in zip(compared, cosines.tolist(), strict=True)
        ]
        if options.similarity_threshold is not None:
            below = cosines < options.similarity_threshold - _TOLERANCE
    elif options.similarity_threshold is not None:
        raise EmbeddingError(
            "similarity_threshold requires the vector of the question; pass question_vector=..., or an embedding model "
            "to the retriever",
            None,
        )
    values = None
    if options.continuity:
        rejected = {compared[row].rank for row in np.flatnonzero(below).tolist()}
        values = Values([one for one in chunks if one.rank not in rejected], options.continuity)
        row_of = {chunk.rank: row for row, chunk in enumerate(compared)}
        rows = [row_of[chunk.rank] for chunk in values.sorted(compared)]
        compared, vectors, below = [compared[row] for row in rows], vectors[rows], below[rows]
    repeats = _repeats(vectors, below, options)
    dissimilar = set(np.flatnonzero(below).tolist())
    dropped = dissimilar | repeats.keys()
    missing = options.min_chunks - (len(chunks) - len(dropped))
    if missing > 0:
        # Best first, redundant chunks last.
        dropped -= set(sorted(dropped, key=lambda row: (row in repeats, row))[:missing])
    drops: list[Drop] = []
    for row in sorted(dropped):
        chunk = compared[row]
        if row in dissimilar:
            detail = f"similarity to the question {chunk.similarity:.3f}, minimum {options.similarity_threshold}"
            drops.append(Drop(chunk, "similarity_threshold", chunk.similarity, detail))
        else:
            twin, cosine = repeats[row]
            cosine = min(1.0, max(-1.0, cosine))
            best = compared[twin].rank
            detail = f"similarity to rank {best} {cosine:.3f}, threshold {options.redundancy_threshold:g}"
            drops.append(Drop(chunk, "redundancy_threshold", cosine, detail, best))
    by_rank = {chunk.rank: chunk for chunk in compared}
    dropped_ranks = {drop.chunk.rank for drop in drops}
    kept = [by_rank.get(chunk.rank, chunk) for chunk in chunks if chunk.rank not in dropped_ranks]
    return (values.sorted(kept) if values else kept), drops, values


def _chunk_vectors(chunks: Sequence[Chunk]) -> NDArray[np.float32]:
    """The vectors of chunks as unit rows, of shape (chunks, dimension)."""
    for chunk in chunks:
        if chunk.vector is None:
            raise EmbeddingError(
                f"a chunk ({chunk.label()}) has no vector, which thresholds require; pass Chunk(vector=...), or an "
                "embedding model to the retriever",
                chunk,
            )
    return unit_rows(
        usable_rows([chunk.vector for chunk in chunks], chunks, lambda chunk: f"a chunk ({chunk.label()})")
    )


def _question_row(question: Vector, dimension: int) -> NDArray[np.float32]:
    """The vector of a question as a unit vector, checked for the dimension of the chunks."""
    vector = usable_rows([question], [question], lambda _: "the question")
    if vector.shape[1] != dimension:
        raise EmbeddingError(
            f"the vector of the question has dimension {vector.shape[1]}, those of the chunks have {dimension}; "
            "embed both with the same model",
            question,
        )
    row: NDArray[np.float32] = unit_rows(vector)[0]
    return row


def _repeats(
    vectors: NDArray[np.float32], below: NDArray[np.bool_], options: ContextOptions
) -> dict[int, tuple[int, float]]:
    """The redundant rows: the row that each repeats, and their cosine; those below the threshold are compared last."""
    if options.redundancy_threshold is None:
        return {}
    rows = np.flatnonzero(~below)
    if options.min_chunks:
        rows = np.concatenate([rows, np.flatnonzero(below)])
    twins, cosines = find_repeats(vectors[rows], options.redundancy_threshold - _TOLERANCE)
    return {int(rows[at]): (int(rows[twins[at]]), float(cosines[at])) for at in np.flatnonzero(twins >= 0).tolist()}
