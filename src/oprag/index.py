"""Exact cosine search over the chunks of one or many sources, held in one matrix."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oprag.around import neighbors_among
from oprag.chunk import Chunk
from oprag.embed import Embedder, as_vectors
from oprag.errors import ChunkError, EmbeddingError, IndexFileError, MissingSourceError, OptionError, QueryError
from oprag.index_file import Contents, read_index, write_index
from oprag.neighbors import NeighborReader
from oprag.question import check_question
from oprag.source import source_name
from oprag.split import split_tokens

__all__ = ["DocumentIndex"]

_BATCH = 256

Progress = Callable[[int, int], None]


class DocumentIndex:
    """Chunks and their vectors.

    Search is exact: one product of the matrix with the question, so it suits a document or some hundred of them. For
    millions of chunks use a vector store, and `oprag.langchain` or `oprag.llama_index` over it.

    Args:
        texts: The texts of the chunks.
        metadata: What is known about each chunk; `source` and `chunk_index` are needed for source order.
        vectors: The embeddings, of shape (number of chunks, dimension).
        embedder: Embeds the questions.

    Raises:
        ChunkError: A text is no string, or there are not as many metadata as texts.
        EmbeddingError: The vectors have another shape, or are not finite, or the embedder is none.

    Example:
        >>> from oprag.local import LocalEmbedder
        >>> embedder = LocalEmbedder()
        >>> texts = {"pets": "Cats purr. Dogs bark. Parrots talk."}
        >>> index = DocumentIndex.from_texts(texts, embedder, embedder.tokenizer, size=5)
        >>> [hit.text for hit in index.search("Which animal barks?", k=1)]
        [' Dogs bark.']
    """

    def __init__(
        self, texts: Sequence[str], metadata: Sequence[Mapping[str, Any]], vectors: Any, embedder: Embedder
    ) -> None:
        if not isinstance(embedder, Embedder):
            raise EmbeddingError(
                f"expected an embedder with name, embed_questions and embed_documents, got {type(embedder).__name__}; "
                "DualEncoder makes one of two functions",
                embedder,
            )
        if len(texts) != len(metadata):
            raise ChunkError(f"expected metadata for {len(texts)} chunks, got {len(metadata)}", metadata)
        self._vectors = as_vectors(vectors, len(texts))
        self._vectors.flags.writeable = False
        self._embedder = embedder
        self._equals = _first_equals(self._vectors)
        # Checked and built once; a hit is a copy with its rank and score.
        self._chunks = [
            Chunk(text, row, metadata=data, id=str(row))
            for row, (text, data) in enumerate(zip(texts, metadata, strict=True))
        ]

    @classmethod
    def from_texts(
        cls,
        sources: Mapping[str, str],
        embedder: Embedder,
        tokenizer: Any,
        *,
        size: int = 128,
        overlap: int = 0,
        progress: Progress | None = None,
    ) -> DocumentIndex:
        """Split, stamp and embed whole texts.

        Args:
            sources: The text of each source by its name.
            embedder: Embeds chunks and questions.
            tokenizer: What `split_tokens` takes.
            size: Tokens in a chunk.
            overlap: Tokens that neighbours share.
            progress: Called with the number of embedded chunks and the number of all.

        Raises:
            ChunkError: `sources` is no mapping, or a text is no string.
            MissingSourceError: A source has no name.
            EmbeddingError: The embedder gave vectors of another shape, or not finite.
        """
        if not isinstance(sources, Mapping):
            raise ChunkError(f"sources must map names to texts, got {type(sources).__name__}", sources)
        texts: list[str] = []
        metadata: list[dict[str, Any]] = []
        for name, text in sources.items():
            if source_name(name) is None:
                raise MissingSourceError(f"a source must be named by a non-empty string, got {name!r}", name)
            for number, window in enumerate(split_tokens(text, tokenizer, size, overlap)):
                texts.append(window.text)
                metadata.append(
                    {"source": name, "chunk_index": number, "start_index": window.start, "end_index": window.end}
                )
        return cls(texts, metadata, _embed(texts, embedder, progress), embedder)

    def __len__(self) -> int:
        return len(self._chunks)

    @property
    def embedder(self) -> Embedder:
        """What embeds the questions."""
        return self._embedder

    def neighbors(self, chunk: Chunk, number: int) -> Iterable[Chunk]:
        """The chunks around one in its source, itself included; to be used as `read_neighbors`.

        Args:
            chunk: A chunk of this index.
            number: How many before and how many after it.
        """
        return self._around(chunk, number)

    @cached_property
    def _around(self) -> NeighborReader:
        return neighbors_among(self._chunks)

    @property
    def chunks(self) -> list[Chunk]:
        """All chunks, in the sequence in which they were added."""
        return list(self._chunks)

    @property
    def vectors(self) -> NDArray[np.float32]:
        """The unit vectors of the chunks, of shape (number of chunks, dimension); they cannot be written to."""
        return self._vectors

    def search(self, question: str, k: int) -> list[Chunk]:
        """The k chunks whose cosine with the question is largest, best first; of equals the first added.

        Raises:
            QueryError: The question is empty or no string.
            OptionError: k is no whole number from 1.
            EmbeddingError: The embedder gave a vector of another dimension.
        """
        return self.search_all([question], k)[0]

    def search_all(self, questions: Sequence[str], k: int) -> list[list[Chunk]]:
        """As `search`, for many questions with one product: several times faster than one after the other.

        Args:
            questions: The questions.
            k: The most chunks for each.

        Returns:
            One list of chunks for each question.
        """
        if type(k) is not int or k < 1:
            raise OptionError(f"k must be a whole number from 1, got {k!r}", k)
        if isinstance(questions, str):
            raise QueryError("expected a list of questions, got one; search() takes that", questions)
        for question in questions:
            check_question(question)
        if not questions or not self._chunks:
            return [[] for _ in questions]
        encoded = self._embedder.embed_questions(list(questions))
        wanted = as_vectors(encoded, len(questions), self._vectors.shape[1])
        scores = wanted @ self._vectors.T if len(questions) > 1 else (self._vectors @ wanted[0])[None]
        if self._equals is not None:
            scores = scores[:, self._equals]
        return [self._hits(row, top(row, k)) for row in scores]

    def _hits(self, scores: NDArray[np.float32], indices: NDArray[np.intp]) -> list[Chunk]:
        hits: list[Chunk] = []
        for rank, (index, score) in enumerate(zip(indices.tolist(), scores[indices].tolist(), strict=True)):
            hit = object.__new__(Chunk)
            hit.__dict__.update(self._chunks[index].__dict__, rank=rank, score=score, vector=self._vectors[index])
            hits.append(hit)
        return hits

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to one file, without pickle; a file that is there is replaced in one step.

        Raises:
            IndexFileError: The metadata holds something that JSON cannot.
        """
        texts = [chunk.text for chunk in self._chunks]
        metadata = [dict(chunk.metadata) for chunk in self._chunks]
        write_index(Path(path), Contents(self._embedder.name, texts, metadata, self._vectors))

    @classmethod
    def load(cls, path: str | os.PathLike[str], embedder: Embedder) -> DocumentIndex:
        """Read a saved index.

        Args:
            path: The file.
            embedder: The one that the index was made with.

        Raises:
            FileNotFoundError: There is no such file.
            IndexFileError: The file is not a saved index, is damaged, or was written by a newer version.
            EmbeddingError: The index was made with another embedder.
        """
        path = Path(path)
        made_with, texts, metadata, vectors = read_index(path)
        if made_with != embedder.name:
            raise EmbeddingError(f"{path} was made with the embedder {made_with!r}, got {embedder.name!r}", embedder)
        try:
            return cls(texts, metadata, vectors, embedder)
        except (ChunkError, EmbeddingError) as error:
            raise IndexFileError(f"{path} is damaged: {error}", path) from error


def top(scores: NDArray[np.float32], k: int) -> NDArray[np.intp]:
    """The indices of the k largest scores, largest first; of equal scores the lowest index.

    `argpartition` alone picks any of several equal scores at the border, so these are chosen by index.

    Args:
        scores: Of shape (number of chunks,).
        k: How many; all of them where there are fewer.
    """
    if k < len(scores):
        border = scores[np.argpartition(scores, len(scores) - k)[len(scores) - k]]
        above = np.flatnonzero(scores > border)
        best = np.concatenate([above, np.flatnonzero(scores == border)[: k - len(above)]])
    else:
        best = np.arange(len(scores))
    return best[np.lexsort((best, -scores[best]))]


def _first_equals(vectors: NDArray[np.float32]) -> NDArray[np.intp] | None:
    """For each row the first one that is equal to it; None where all differ.

    A product gives equal rows cosines that differ in the last bit, by the place of the row in the matrix; they tie.
    """
    first: dict[bytes, int] = {}
    equals = [first.setdefault(row.tobytes(), index) for index, row in enumerate(vectors)]
    return None if len(first) == len(vectors) else np.array(equals)


def _embed(texts: Sequence[str], embedder: Embedder, progress: Progress | None) -> NDArray[np.float32]:
    """Embed in batches, so that progress can be shown and memory stays bounded."""
    parts: list[NDArray[np.float32]] = []
    for start in range(0, len(texts), _BATCH):
        batch = texts[start : start + _BATCH]
        parts.append(as_vectors(embedder.embed_documents(batch), len(batch), parts[0].shape[1] if parts else None))
        if progress is not None:
            progress(start + len(batch), len(texts))
    return np.concatenate(parts) if parts else np.zeros((0, 0), dtype=np.float32)
