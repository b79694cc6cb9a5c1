"""Embedding many texts, in batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from oprag.embed import Embedder, as_vectors

__all__ = ["Progress", "embed_in_batches"]

_BATCH = 256

Progress = Callable[[int, int], None]
"""Called with the number of embedded texts and the number of all."""


def embed_in_batches(texts: Sequence[str], embedder: Embedder, progress: Progress | None = None) -> NDArray[np.float32]:
    """Embed in batches, so that progress can be shown and memory stays bounded.

    Returns:
        Unit vectors, of shape (number of texts, dimension).

    Raises:
        EmbeddingError: The embedder gave vectors of another shape, or not finite.
    """
    parts: list[NDArray[np.float32]] = []
    for start in range(0, len(texts), _BATCH):
        batch = texts[start : start + _BATCH]
        parts.append(as_vectors(embedder.embed_documents(batch), len(batch), parts[0].shape[1] if parts else None))
        if progress is not None:
            progress(start + len(batch), len(texts))
    return np.concatenate(parts) if parts else np.zeros((0, 0), dtype=np.float32)
