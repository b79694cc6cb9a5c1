"""The embedded index: exact search over the chunks of whole documents by vectors, BM25, or both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from oprag.chunk import Chunk, changed, counted, quoted
from oprag.embedding.cosine import as_vectors, first_equals, top
from oprag.embedding.embedder import Embedder, WrappedEmbedder
from oprag.embedding.vector_cache import VectorCache
from oprag.errors import CacheError, ChunkError, EmbeddingError, OptionError
from oprag.index.bm25 import BM25Search
from oprag.index.splitting import Split, Splitter, pieces_of
from oprag.options import check_choice, check_count, check_question
from oprag.pipeline.neighbors import NeighborReader, neighbors_among

__all__ = ["DocumentIndex", "ExactSearch", "SearchKind", "check_search", "rrf"]

SearchKind = Literal["dense", "bm25", "hybrid"]
"""Search method: cosine similarity of vectors, BM25 over words, or both, fused by rank."""

_BATCH = 256  # texts in a call of the embedder
_QUESTION_BYTES = 2**18  # of cached vectors: dozens of questions
_RRF_CONSTANT = 60  # of the paper; the larger it is, the less the first ranks differ in score


class DocumentIndex:
    """An in-memory index of chunks, with vectors if it has an embedder.

    Search is exact: every chunk is compared with the question. This suits one document up to a few hundred. For
    millions of chunks, use a vector store with `oprag.langchain` or `oprag.llama_index`.

    Args:
        texts: The texts of the chunks.
        metadata: The metadata of each chunk; `source` and `chunk_index` are needed for source order.
        vectors: The embeddings, of shape (number of chunks, dimension); None without an embedder.
        embedder: Embeds the questions; None for an index with BM25 search only.

    Raises:
        ChunkError: A text is not a string, or `texts` and `metadata` differ in length.
        EmbeddingError: The vectors have the wrong shape or are not finite, or `embedder` is not an embedder.

    Example:
        >>> from oprag.embedding.static import LocalEmbedder
        >>> texts = {"pets": "Cats purr. Dogs bark. Parrots talk."}
        >>> index = DocumentIndex.from_texts(texts, chunk_size=2)
        >>> [hit.text for hit in index.search("Do dogs fly?", k=1)]
        ['Dogs bark. ']
        >>> index = DocumentIndex.from_texts(texts, LocalEmbedder(), chunk_size=2)
        >>> [hit.text for hit in index.search("Which animal barks?", k=1)]
        ['Dogs bark. ']
    """

    def __init__(
        self,
        texts: Sequence[str],
        metadata: Sequence[Mapping[str, Any]],
        vectors: Any = None,
        embedder: Embedder | None = None,
    ) -> None:
        if (vectors is not None or embedder is not None) and not isinstance(embedder, Embedder):
            raise EmbeddingError(
                f"expected an embedder with name, embed_questions and embed_documents, got {type(embedder).__name__}; "
                "DualEncoder makes one from two functions",
                embedder,
            )
        if len(texts) != len(metadata):
            raise ChunkError(f"expected metadata for {len(texts)} chunks, got {len(metadata)}", metadata)
        self._vectors = np.zeros((len(texts), 0), np.float32) if embedder is None else as_vectors(vectors, len(texts))
        self._vectors.flags.writeable = False
        self._questions = None if embedder is None else _Questions(embedder, self._vectors.shape[1] or None)
        # Validated and built once; a hit is a copy with its rank and score.
        self._chunks = [
            Chunk(text, row, metadata=data, id=str(row))
            for row, (text, data) in enumerate(zip(texts, metadata, strict=True))
        ]
        self._exact = ExactSearch([chunk.text for chunk in self._chunks], self._vectors)

    @classmethod
    def from_texts(
        cls,
        sources: Mapping[Any, str | Sequence[str]],
        embedder: Embedder | None = None,
        tokenizer: Any = None,
        *,
        splitter: Splitter | None = None,
        chunk_size: int | None = None,
        chunk_overlap: int | None = None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> DocumentIndex:
        """Split, stamp and embed whole texts.

        With `sources` alone, texts are split into windows of words and searched with BM25.

        Args:
            sources: Maps the name or path of each source to its text, or to a list of its pages. Pages are split
                separately, and the metadata of their chunks contain `page`, from 1.
            embedder: Embeds chunks and questions; None for an index with BM25 search only.
            tokenizer: A tokenizer as for `split_tokens`; not needed for windows of words.
            splitter: "tokens" for `split_tokens`, "words" for windows of words, "recursive" for `split_recursive`.
                Default: "tokens" with a tokenizer, else "words".
            chunk_size: Chunk size in tokens or words. Default: 128 tokens, 300 words or (recursive) 1,000 tokens.
            chunk_overlap: Overlap of adjacent chunks in tokens or words. Default: none or (recursive) a tenth of
                `chunk_size`.
            on_progress: Called with the number of chunks embedded so far and the total number of chunks.

        Returns:
            The index.

        Raises:
            ChunkError: `sources` is not a mapping, or a text is not a string.
            MissingSourceError: A source has no name.
            OptionError: `splitter` is unknown, or `chunk_size` or `chunk_overlap` is out of range.
            TokenizerError: The tokenizer is unsupported, or missing although the splitter needs one.
            EmbeddingError: The embedder returned vectors that have the wrong shape or are not finite.
        """
        if splitter is None:
            splitter = "words" if tokenizer is None else "tokens"
        pieces = list(pieces_of(sources, tokenizer, Split(splitter, chunk_size, chunk_overlap)))
        texts, metadata = [window.text for window, _ in pieces], [place for _, place in pieces]
        vectors = None if embedder is None else _embedded(texts, embedder, on_progress)
        return cls(texts, metadata, vectors, embedder)

    def __len__(self) -> int:
        return len(self._chunks)

    def __repr__(self) -> str:
        vectors = "no vectors"
        if self._questions is not None:
            vectors = f"vectors of dimension {self._vectors.shape[1]} of {quoted(self._questions.name)}"
        return f"DocumentIndex({counted(len(self), 'chunk')}, {vectors})"

    @property
    def chunks(self) -> list[Chunk]:
        """All chunks, in the order in which they were added."""
        return list(self._chunks)

    @property
    def vectors(self) -> NDArray[np.float32]:
        """The unit vectors of the chunks, a read-only array of shape (number of chunks, dimension)."""
        return self._vectors

    @property
    def embedder(self) -> Embedder | None:
        """The embedder of the questions, which caches the last few; None for an index with BM25 search only."""
        return self._questions

    def question_vector(self, question: str) -> NDArray[np.float32]:
        """Return the unit vector of a question; the last few are cached.

        Args:
            question: The question.

        Returns:
            The vector, of shape (dimension,).

        Raises:
            QueryError: The question is empty or not a string.
            EmbeddingError: The index has no embedder, or the embedder returned a vector of another dimension.
        """
        check_question(question)
        if self._questions is None:
            raise EmbeddingError("this index has no embedder; create it with one to embed questions", self)
        return self._questions.embed_questions([question])[0]  # type: ignore[no-any-return]

    def search(self, question: str, k: int, search: SearchKind | None = None) -> list[Chunk]:
        """Return the k best chunks for a question.

        Args:
            question: The question.
            k: Maximum number of chunks.
            search: "dense" ranks all chunks by cosine similarity; "bm25" ranks the chunks that share a word with the
                question by BM25; "hybrid" fuses both complete rankings. Default: "dense", or "bm25" for an index
                without an embedder.

        Returns:
            The chunks, best first, with the scores of this search; ties are in the order in which they were added.

        Raises:
            QueryError: The question is empty or not a string.
            OptionError: k is not an integer >= 1, `search` is unknown, or it needs an embedder.
            EmbeddingError: The embedder returned a vector of another dimension.
            MissingExtraError: BM25 is not installed.
        """
        check_count("k", k, optional=False)
        check_question(question)
        kind = check_search(search, with_vectors=self._questions is not None)
        if not self._chunks:
            return []
        vector = None if kind == "bm25" else self.question_vector(question)
        dense = self._questions is not None
        return [
            changed(self._chunks[row], rank=rank, score=score, vector=self._vectors[row] if dense else None)
            for rank, (row, score) in enumerate(self._exact.search(question, vector, k, kind))
        ]

    def neighbors(self, chunk: Chunk, number: int) -> Iterable[Chunk]:
        """Return the neighbors of a chunk in its source, including the chunk; pass this as `read_neighbors`.

        Args:
            chunk: A chunk of this index.
            number: Maximum number of chunks before it, and after it.
        """
        return self._around(chunk, number)

    @cached_property
    def _around(self) -> NeighborReader:
        return neighbors_among(self._chunks)


def check_search(search: Any, *, with_vectors: bool) -> SearchKind:
    """Return `search`, or the default of an index for None; reject one that is unknown or needs vectors."""
    if search is None:
        return "dense" if with_vectors else "bm25"
    check_choice("search", search, get_args(SearchKind))
    if search != "bm25" and not with_vectors:
        raise OptionError(
            f'search="{search}" requires vectors, but this index has no embedder; create it with one, or use '
            'search="bm25"',
            search,
        )
    return search  # type: ignore[no-any-return]


class ExactSearch:
    """Ranks all chunks for a question; an index and the comparison of experiments rank alike."""

    def __init__(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        self._texts = texts
        self._vectors = vectors  # unit vectors, of shape (number of chunks, dimension)

    def search(
        self, question: str, vector: NDArray[np.float32] | None, k: int, kind: SearchKind
    ) -> list[tuple[int, float]]:
        """The rows and scores of up to k chunks, best first; "bm25" needs no vector of the question."""
        scores = self._by_words.scores(question) if vector is None else self._scores(question, vector, kind)
        rows = top(scores, k)
        if kind == "bm25":
            # Drop chunks that share no word with the question.
            rows = rows[scores[rows] > 0]
        return list(zip(rows.tolist(), scores[rows].tolist(), strict=True))

    def _scores(self, question: str, vector: NDArray[np.float32], kind: SearchKind) -> NDArray[np.floating[Any]]:
        cosines = self._vectors @ vector
        if self._equals is not None:
            cosines = cosines[self._equals]
        if kind == "dense":
            return cosines
        by_words = self._by_words.scores(question)
        found = top(by_words, len(by_words))
        # Both complete rankings, independently of k, so that a larger k only adds hits at the end.
        return rrf([top(cosines, len(cosines)), found[by_words[found] > 0]], len(cosines))

    @cached_property
    def _equals(self) -> NDArray[np.intp] | None:
        return first_equals(self._vectors)

    @cached_property
    def _by_words(self) -> BM25Search:
        return BM25Search(self._texts)


class _Questions(WrappedEmbedder):
    """The embedder of an index: one question is embedded once for its search, for thresholds and to rank answers."""

    def __init__(self, embedder: Embedder, dimension: int | None) -> None:
        super().__init__(embedder)
        self.cache = VectorCache(max_bytes=_QUESTION_BYTES)
        self._dimension = dimension

    @property
    def name(self) -> str:
        return self.embeddings.name  # type: ignore[no-any-return]

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        known: dict[str, Any] = dict(zip(texts, self.cache.get(self, texts, "question"), strict=True))
        new = [text for text, vector in known.items() if vector is None]
        if new:
            vectors = as_vectors(self.embeddings.embed_questions(new), len(new), self._dimension)
            # A vector of zeros cannot be cached.
            with suppress(CacheError):
                self.cache.put(self, new, vectors, "question")
            known |= zip(new, vectors, strict=True)
        return np.stack([known[text] for text in texts])

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.embeddings.embed_documents(texts)  # type: ignore[no-any-return]


def _embedded(
    texts: Sequence[str], embedder: Embedder, on_progress: Callable[[int, int], None] | None
) -> NDArray[np.float32]:
    """Embed texts in batches, to show progress and bound memory; returns unit vectors (number of texts, dimension)."""
    parts: list[NDArray[np.float32]] = []
    for start in range(0, len(texts), _BATCH):
        batch = texts[start : start + _BATCH]
        parts.append(as_vectors(embedder.embed_documents(batch), len(batch), parts[0].shape[1] if parts else None))
        if on_progress is not None:
            on_progress(start + len(batch), len(texts))
    return np.concatenate(parts) if parts else np.zeros((0, 0), dtype=np.float32)


def rrf(rankings: Sequence[NDArray[np.intp]], count: int) -> NDArray[np.float64]:
    """Reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009): each rank, from 1, adds 1 / (60 + rank)."""
    fused = np.zeros(count)
    for ranking in rankings:
        fused[ranking] += 1 / (_RRF_CONSTANT + 1 + np.arange(len(ranking)))
    return fused
