"""Finding vectors that repeat a better-ranked one."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oprag.chunk import Chunk, Drop, Vector, changed
from oprag.embedding.cosine import unit_rows, usable_rows
from oprag.errors import EmbeddingError
from oprag.options import ContextOptions

__all__ = ["Repeats", "apply_thresholds", "chunk_vectors", "find_repeats", "question_row"]

# Rows that are compared with all kept ones at once: the product of all rows with all would take memory that grows with
# the square of their number.
_BLOCK = 256


class Repeats(NamedTuple):
    """What each row repeats.

    Attributes:
        twins: The kept row that is nearest to a row that goes, and -1 for a row that stays; of shape (rows,).
        cosines: The cosine of a row that goes with its twin; of shape (rows,), 0 for a row that stays.
    """

    twins: NDArray[np.intp]
    cosines: NDArray[np.float32]


def find_repeats(vectors: NDArray[np.float32], threshold: float) -> Repeats:
    """Walk best first; a row goes when its cosine with a row that stays is at least the threshold.

    So the better-ranked of two rows that repeat each other stays, always, and a row that repeats nothing but rows that
    went stays as well. Time grows with rows × kept rows, memory with the rows alone.
    """
    rows = len(vectors)
    twins = np.full(rows, -1, dtype=np.intp)
    cosines = np.zeros(rows, dtype=np.float32)
    staying = np.empty_like(vectors)
    numbers = np.empty(rows, dtype=np.intp)
    count = 0
    for start in range(0, rows, _BLOCK):
        block = vectors[start : start + _BLOCK]
        twin, cosine = twins[start : start + _BLOCK], cosines[start : start + _BLOCK]
        if count:
            nearest, cosine[:] = _nearest(block, staying[:count])
            twin[:] = np.where(cosine >= threshold, numbers[nearest], -1)
            cosine[twin < 0] = 0
        _compare_within(block, start, threshold, twin, cosine)
        stays = np.flatnonzero(twin < 0)
        staying[count : count + len(stays)] = block[stays]
        numbers[count : count + len(stays)] = start + stays
        count += len(stays)
    return Repeats(twins, cosines)


def _nearest(block: NDArray[np.float32], staying: NDArray[np.float32]) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """For each row of a block the nearest of other rows, and its cosine."""
    products = block @ staying.T
    nearest = products.argmax(axis=1)
    return nearest, np.take_along_axis(products, nearest[:, None], axis=1)[:, 0]


def _compare_within(
    block: NDArray[np.float32], start: int, threshold: float, twin: NDArray[np.intp], cosine: NDArray[np.float32]
) -> None:
    """Fill in what rows of a block repeat of rows inside of it."""
    products = block @ block.T
    repeats = np.triu(products >= threshold, 1)
    earlier, later = np.nonzero(repeats)
    if not len(earlier):
        return
    # Row by row: whether a row stays is known when all rows before it were looked at. In lists, since one number of an
    # array takes longer than a step of Python.
    twins, cosines = twin.tolist(), cosine.tolist()
    for one, other, nearness in zip(earlier.tolist(), later.tolist(), products[repeats].tolist(), strict=True):
        if twins[one] < 0 and (twins[other] < 0 or nearness > cosines[other]):
            twins[other], cosines[other] = start + one, nearness
    twin[:], cosine[:] = twins, cosines


# The cosine of a float32 vector with itself can come out this much below 1, and a threshold of 1 means equal vectors.
_TOLERANCE = 1e-6


def apply_thresholds(
    chunks: Sequence[Chunk], options: ContextOptions, question: Vector | None
) -> tuple[list[Chunk], list[Drop]]:
    """Keep chunks like the question first, and of these the ones that repeat none of a better rank.

    Where fewer than `min_chunks` are left, chunks come back: best first those that repeat nothing, then the others.

    Chunks without text and vector are kept: there is nothing that could be compared.
    """
    # A picture or an empty text is like nothing, and repeats nothing.
    judged = [chunk for chunk in chunks if chunk.vector is not None or chunk.text.strip()]
    if not judged:
        return list(chunks), []
    vectors = chunk_vectors(judged)
    below = np.zeros(len(judged), dtype=bool)
    if question is not None:
        cosines = np.clip(vectors @ question_row(question, vectors.shape[1]), -1, 1)
        judged = [
            chunk if chunk.similarity == one else changed(chunk, similarity=one)
            for chunk, one in zip(judged, cosines.tolist(), strict=True)
        ]
        if options.similarity_threshold is not None:
            below = cosines < options.similarity_threshold - _TOLERANCE
    elif options.similarity_threshold is not None:
        raise EmbeddingError(
            "similarity_threshold needs the vector of the question; give question_vector=, or an embedding model to "
            "the retriever",
            None,
        )
    repeats = _repeats(vectors, below, options)
    unlike = set(np.flatnonzero(below).tolist())
    goes = unlike | repeats.keys()
    missing = options.min_chunks - (len(chunks) - len(goes))
    if missing > 0:
        # Best first those that repeat nothing, then best first the others.
        goes -= set(sorted(goes, key=lambda row: (row in repeats, row))[:missing])
    too_low = f"with the question, below {options.similarity_threshold}"
    drops: list[Drop] = []
    for row in sorted(goes):
        chunk = judged[row]
        if row in unlike:
            detail = f"cosine {chunk.similarity:.3f} {too_low}"
            drops.append(Drop(chunk, "similarity_threshold", chunk.similarity, detail))
        else:
            twin, cosine = repeats[row]
            drops.append(_repeat(chunk, judged[twin], cosine, options))
    now = {chunk.rank: chunk for chunk in judged}
    out = {drop.chunk.rank for drop in drops}
    return [now.get(chunk.rank, chunk) for chunk in chunks if chunk.rank not in out], drops


def chunk_vectors(chunks: Sequence[Chunk]) -> NDArray[np.float32]:
    """The vectors of chunks as unit rows, of shape (chunks, dimension)."""
    for chunk in chunks:
        if chunk.vector is None:
            raise EmbeddingError(
                f"a chunk ({chunk.label()}) has no vector, and thresholds need one; give Chunk(vector=...), or "
                "an embedding model to the retriever",
                chunk,
            )
    return unit_rows(
        usable_rows([chunk.vector for chunk in chunks], chunks, lambda chunk: f"a chunk ({chunk.label()})")
    )


def question_row(question: Vector, dimension: int) -> NDArray[np.float32]:
    """The vector of a question as a unit vector of this dimension."""
    vector = usable_rows([question], [question], lambda _: "the question")
    if vector.shape[1] != dimension:
        raise EmbeddingError(
            f"the vector of the question has dimension {vector.shape[1]}, those of the chunks have {dimension}; were "
            "they made with another embedder?",
            question,
        )
    row: NDArray[np.float32] = unit_rows(vector)[0]
    return row


def _repeats(
    vectors: NDArray[np.float32], below: NDArray[np.bool_], options: ContextOptions
) -> dict[int, tuple[int, float]]:
    """For each row that repeats a better one that one, and their cosine.

    Rows below the similarity threshold come after all others: only `min_chunks` uses them.
    """
    if options.redundancy_threshold is None:
        return {}
    walk = np.flatnonzero(~below)
    if options.min_chunks:
        walk = np.concatenate([walk, np.flatnonzero(below)])
    twins, cosines = find_repeats(vectors[walk], options.redundancy_threshold - _TOLERANCE)
    return {int(walk[at]): (int(walk[twins[at]]), float(cosines[at])) for at in np.flatnonzero(twins >= 0).tolist()}


def _repeat(chunk: Chunk, twin: Chunk, cosine: float, options: ContextOptions) -> Drop:
    cosine = min(1.0, max(-1.0, cosine))
    detail = f"cosine {cosine:.3f} with rank {twin.rank}, a better one; the limit is {options.redundancy_threshold:g}"
    return Drop(chunk, "redundancy_threshold", cosine, detail, twin.rank)
