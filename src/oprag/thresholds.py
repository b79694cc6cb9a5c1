"""Contextual compression: leaving out chunks that are not like the question, or that repeat a better one."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oprag.assembly import Assembly
from oprag.chunk import Chunk, Vector, changed
from oprag.drop import Drop
from oprag.errors import EmbeddingError
from oprag.redundancy import find_repeats

__all__ = ["apply_thresholds", "unit_rows", "unit_vector"]

# The cosine of a float32 vector with itself can come out this much below 1, and a threshold of 1 means equal vectors.
_TOLERANCE = 1e-6


def apply_thresholds(
    chunks: Sequence[Chunk], assembly: Assembly, question: Vector | None
) -> tuple[list[Chunk], list[Drop]]:
    """Keep chunks like the question first, and of these the ones that repeat none of a better rank.

    Where fewer than `min_keep` are left, chunks come back: best first those that repeat nothing, then the others.

    Chunks without text and vector are kept: there is nothing that could be compared.

    Args:
        chunks: Chunks with vectors, best first.
        assembly: The options; one threshold at least is set.
        question: The vector of the question, of shape (dimension,); needed for `similarity_threshold`.

    Returns:
        The kept chunks, best first, with their `similarity` to the question where its vector is known, and the others.

    Raises:
        EmbeddingError: A vector is missing, is of another dimension, is not finite, or has no length.
    """
    # A picture or an empty text is like nothing, and repeats nothing.
    judged = [chunk for chunk in chunks if chunk.text.strip() or chunk.vector is not None]
    if not judged:
        return list(chunks), []
    vectors = unit_rows(judged)
    below = np.zeros(len(judged), dtype=bool)
    similarities: list[float | None] = [None] * len(judged)
    if question is not None:
        cosines = np.clip(vectors @ unit_vector(question, vectors.shape[1]), -1, 1)
        similarities = cosines.tolist()
        if assembly.similarity_threshold is not None:
            below = cosines < assembly.similarity_threshold - _TOLERANCE
    elif assembly.similarity_threshold is not None:
        raise EmbeddingError(
            "similarity_threshold needs the vector of the question; give question_vector=, or embeddings=", None
        )
    # Chunks that are below the similarity threshold come behind all others: of these only min_keep makes use.
    walk = np.concatenate([np.flatnonzero(~below), np.flatnonzero(below)])
    if not assembly.min_keep:
        walk = walk[: len(judged) - int(below.sum())]
    twin_places, nearness = _repeats(vectors[walk], assembly.redundancy_threshold)
    repeats = {
        int(walk[at]): (int(walk[twin_places[at]]), float(nearness[at])) for at in np.flatnonzero(twin_places >= 0)
    }
    unlike = set(np.flatnonzero(below).tolist())
    stays = {row for row in range(len(judged)) if row not in unlike and row not in repeats}
    missing = assembly.min_keep - len(stays) - (len(chunks) - len(judged))
    if missing > 0:
        # Best first those that repeat nothing, then best first the others.
        stays |= set(sorted(unlike | repeats.keys(), key=lambda row: (row in repeats, row))[:missing])
    kept: list[Chunk] = []
    dropped: list[Drop] = []
    rows = {chunk.rank: row for row, chunk in enumerate(judged)}
    for chunk in chunks:
        row = rows.get(chunk.rank, -1)
        similarity = similarities[row] if row >= 0 else None
        measured = chunk if similarity is None else changed(chunk, similarity=similarity)
        if row < 0 or row in stays:
            kept.append(measured)
        elif row in unlike:
            dropped.append(_unlike(measured, assembly))
        else:
            twin, cosine = repeats[row]
            dropped.append(_repeat(measured, judged[twin], cosine, assembly))
    return kept, dropped


def unit_rows(chunks: Sequence[Chunk]) -> NDArray[np.float32]:
    """The vectors of chunks as unit rows, of shape (chunks, dimension).

    Raises:
        EmbeddingError: A vector is missing, is of another dimension, is not finite, or has no length.
    """
    matrix = _stacked(chunks)
    lengths = _lengths(matrix)
    usable = np.isfinite(lengths) & (lengths > 0)
    if not usable.all():
        chunk = chunks[int(np.flatnonzero(~usable)[0])]
        raise EmbeddingError(f"the vector of a chunk ({chunk.label()}) {_fault(chunk.vector)}", chunk)
    return np.divide(matrix, lengths[:, None], dtype=np.float32, casting="same_kind")


def unit_vector(question: Vector, dimension: int) -> NDArray[np.float32]:
    """The vector of a question as a unit vector of this dimension.

    Raises:
        EmbeddingError: It is of another dimension, is not finite, or has no length.
    """
    try:
        vector = np.asarray(question, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise EmbeddingError(f"the vector of the question must be numbers: {error}", question) from error
    if vector.shape != (dimension,):
        raise EmbeddingError(
            f"the vector of the question has shape {vector.shape}, those of the chunks have ({dimension},); were they "
            "made with another embedder?",
            question,
        )
    length = float(_lengths(vector[None])[0])
    if not np.isfinite(length) or length == 0:
        raise EmbeddingError(f"the vector of the question {_fault(vector)}", question)
    return np.divide(vector, length, dtype=np.float32, casting="same_kind")


def _stacked(chunks: Sequence[Chunk]) -> NDArray[np.float32]:
    """The vectors of chunks as they are, of shape (chunks, dimension)."""
    given = [chunk.vector for chunk in chunks]
    first = given[0]
    # As adapters give them; a look at each is several times as fast as a conversion.
    if type(first) is np.ndarray and all(
        type(one) is np.ndarray and one.dtype == np.float32 and one.shape == first.shape for one in given
    ):
        matrix = np.array(given)
        if matrix.ndim == 2 and matrix.shape[1]:
            return matrix
    rows: list[NDArray[np.float32]] = []
    for chunk in chunks:
        row = _numbers(chunk)
        if rows and len(row) != len(rows[0]):
            raise EmbeddingError(
                f"the vector of a chunk ({chunk.label()}) has dimension {len(row)}, those before it have "
                f"{len(rows[0])}; vectors of different embedders cannot be compared",
                chunk,
            )
        rows.append(row)
    return np.stack(rows)


def _numbers(chunk: Chunk) -> NDArray[np.float32]:
    if chunk.vector is None:
        raise EmbeddingError(
            f"a chunk ({chunk.label()}) has no vector, and thresholds need one; give embeddings= or Chunk(vector=...)",
            chunk,
        )
    try:
        row = np.asarray(chunk.vector, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise EmbeddingError(f"the vector of a chunk ({chunk.label()}) must be numbers: {error}", chunk) from error
    if row.ndim != 1 or not len(row):
        raise EmbeddingError(f"the vector of a chunk ({chunk.label()}) has shape {row.shape}", chunk)
    return row


def _lengths(matrix: NDArray[np.float32]) -> NDArray[np.float64]:
    # In float64, since squares of large or small values leave float32.
    lengths: NDArray[np.float64] = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))
    return lengths


def _fault(vector: Vector | None) -> str:
    if np.isfinite(np.asarray(vector, dtype=np.float32)).all():
        return "has no length (all zeros), so it has no cosine with anything"
    return "has values that are not finite"


def _repeats(vectors: NDArray[np.float32], threshold: float | None) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    if threshold is None:
        return np.full(len(vectors), -1, dtype=np.intp), np.zeros(len(vectors), dtype=np.float32)
    return find_repeats(vectors, threshold - _TOLERANCE)


def _unlike(chunk: Chunk, assembly: Assembly) -> Drop:
    detail = f"cosine {chunk.similarity:.3f} with the question, below {assembly.similarity_threshold:g}"
    return Drop(chunk, "similarity_threshold", chunk.similarity, detail)


def _repeat(chunk: Chunk, twin: Chunk, cosine: float, assembly: Assembly) -> Drop:
    cosine = min(1.0, max(-1.0, cosine))
    detail = f"cosine {cosine:.3f} with rank {twin.rank}, a better one; the limit is {assembly.redundancy_threshold:g}"
    return Drop(chunk, "redundancy_threshold", cosine, detail, twin.rank)
