"""Embedders: what turns questions and documents into vectors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from oprag.errors import EmbeddingError

__all__ = ["DualEncoder", "Embedder", "as_vectors"]

# How far from 1 the length of a unit vector of float32 values can be.
_UNIT = 1e-6

Encoder = Callable[[Sequence[str]], Any]


@runtime_checkable
class Embedder(Protocol):
    """Anything with a question encoder and a document encoder.

    They are two, since Contriever, Dragon and BGE encode a question in another way than a document; a symmetric model
    does the same in both.
    """

    @property
    def name(self) -> str:
        """The identity of the model and its settings, saved with an index."""
        ...

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape (number of texts, dimension)."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape (number of texts, dimension)."""
        ...


@dataclass(frozen=True)
class DualEncoder:
    """An `Embedder` made of two functions.

    Attributes:
        name: The identity of the model and its settings.
        question: Encodes questions: texts to vectors of shape (number of texts, dimension).
        document: Encodes documents; the same function by default.

    Example:
        BGE wants an instruction before a question::

            model = SentenceTransformer("BAAI/bge-large-en-v1.5")
            instruction = "Represent this sentence for searching relevant passages: "
            embedder = DualEncoder(
                "bge-large-en-v1.5",
                question=lambda texts: model.encode([instruction + text for text in texts]),
                document=model.encode,
            )
    """

    name: str
    question: Encoder
    document: Encoder | None = None

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode questions."""
        return np.asarray(self.question(texts), dtype=np.float32)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode documents."""
        return np.asarray((self.document or self.question)(texts), dtype=np.float32)


def as_vectors(vectors: Any, count: int, dimension: int | None = None) -> NDArray[np.float32]:
    """Vectors as a float32 matrix of unit rows, checked; a row of zeros stays, its cosine with anything is 0.

    Args:
        vectors: An array or lists, of shape (count, dimension).
        count: How many there must be.
        dimension: The dimension that they must have, where it is known.

    Returns:
        A new matrix of shape (count, dimension).

    Raises:
        EmbeddingError: The shape is another one, or a value is not finite.
    """
    try:
        given = np.asarray(vectors)
    except ValueError as error:
        raise EmbeddingError(f"vectors must form a matrix: {error}", vectors) from error
    if given.dtype.kind not in "fiu":
        raise EmbeddingError(f"vectors must be numbers, got an array of {given.dtype}", vectors)
    # What is too large for float32 becomes infinite, and is refused below.
    with np.errstate(over="ignore"):
        matrix = np.array(given, dtype=np.float32, ndmin=2)
    if not count and not matrix.size:
        return np.zeros((0, dimension or 0), dtype=np.float32)
    if matrix.ndim != 2 or matrix.shape[0] != count or not matrix.shape[1]:
        raise EmbeddingError(f"expected {count} vectors, got an array of shape {matrix.shape}", vectors)
    if dimension is not None and matrix.shape[1] != dimension:
        raise EmbeddingError(
            f"expected vectors of dimension {dimension}, got {matrix.shape[1]}; "
            "was the index made with another embedder?",
            vectors,
        )
    if not np.isfinite(matrix).all():
        raise EmbeddingError("vectors must be finite; the embedder gave NaN or infinity", vectors)
    # In float64, since squares of large or small values leave float32. Unit rows stay as they are, to the last bit.
    norms = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))[:, None]
    np.divide(matrix, norms, out=matrix, where=(norms > 0) & (np.abs(norms - 1) > _UNIT), casting="same_kind")
    return matrix
