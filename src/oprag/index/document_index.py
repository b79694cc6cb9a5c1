"""The vectors of questions, the last few of them remembered."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from oprag.assembly.neighbors import NeighborReader, neighbors_among
from oprag.chunk import Chunk, counted, quoted
from oprag.embedding.cosine import CosineSearch, as_vectors, top
from oprag.embedding.embedder import Embedder
from oprag.errors import ChunkError, EmbeddingError, IndexFileError, OptionError, QueryError
from oprag.files.opening import open_regular
from oprag.index.bm25 import BM25Search
from oprag.index.file import Contents, read_index, write_index
from oprag.index.fusion import rrf
from oprag.index.splitting import Split, Splitter, split_sources
from oprag.masking import describe
from oprag.options import check_choice
from oprag.question import check_question

__all__ = ["DocumentIndex", "Progress", "QuestionVectors", "Search", "SearchKind", "embed_in_batches"]

_REMEMBERED = 64


class QuestionVectors:
    """Embeds questions; one that was asked lately is not embedded again.

    A question is searched for, held against thresholds and ranked against answers, and a hosted model takes a request
    for each time that it is embedded.

    Args:
        embedder: Embeds the questions.
        dimension: The dimension that their vectors must have; None where it is not known.
    """

    def __init__(self, embedder: Embedder, dimension: int | None) -> None:
        self._embedder = embedder
        self._dimension = dimension
        self._known: OrderedDict[tuple[str, str], NDArray[np.float32]] = OrderedDict()
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[QuestionVectors], tuple[Embedder, int | None]]:
        """A copy, here or in another process, begins without what is remembered: a lock cannot be copied."""
        return QuestionVectors, (self._embedder, self._dimension)

    @property
    def name(self) -> str:
        """The identity of the embedder."""
        return self._embedder.name

    @property
    def lasting(self) -> bool:
        """Whether the name means the same in another process."""
        return getattr(self._embedder, "lasting", True)

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As `of`: this is an `oprag.Embedder` itself."""
        return self.of(texts)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """What the embedder makes of documents, of which none is remembered."""
        return self._embedder.embed_documents(texts)

    def forget(self) -> None:
        """Forget what is remembered, so that the next question is embedded as if it were the first."""
        with self._lock:
            self._known.clear()

    def of(self, questions: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, of shape (number of questions, dimension).

        Raises:
            EmbeddingError: The embedder gave vectors of another number or dimension, or not finite.
        """
        # Its settings, and with them its name, may have been changed.
        name = self._embedder.name
        with self._lock:
            vectors = {one: self._known[name, one] for one in questions if (name, one) in self._known}
        new = [question for question in dict.fromkeys(questions) if question not in vectors]
        if new:
            # Outside of the lock: it may take a second, and other threads ask other questions.
            embedded = as_vectors(self._embedder.embed_questions(new), len(new), self._dimension)
            vectors |= zip(new, embedded, strict=True)
        with self._lock:
            for question in questions[-_REMEMBERED:]:
                self._known.pop((name, question), None)
                # A copy of its row: a view would keep all rows of the batch.
                self._known[name, question] = vectors[question].copy()
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return np.stack([vectors[question] for question in questions])


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


SearchKind = Literal["dense", "bm25", "hybrid"]
"""How an index is searched: by the cosine of vectors, by the words of the question, or by both, fused by rank."""

Scores = NDArray[np.floating[Any]]


class Search:
    """Finds chunks; what a kind of search needs is made when it is first asked for.

    Args:
        chunks: The chunks.
        vectors: Their unit vectors, of shape (number of chunks, dimension).
        questions: Embeds questions; None where there are no vectors.
    """

    def __init__(
        self, chunks: Sequence[Chunk], vectors: NDArray[np.float32], questions: QuestionVectors | None
    ) -> None:
        self._chunks = chunks
        self._vectors = vectors
        self._questions = questions

    def check(self, kind: Any) -> None:
        """Refuse a kind of search that cannot be used here.

        Raises:
            OptionError: There is no such kind of search, or it needs vectors and there are none.
        """
        check_choice("search", kind, get_args(SearchKind))
        if kind != "bm25" and self._questions is None:
            raise OptionError(
                f'search="{kind}" needs vectors, and this index was made without an embedder; make it with '
                'one, or use search="bm25"',
                kind,
            )

    def hits(self, questions: Sequence[str], k: int, kind: SearchKind) -> list[list[Chunk]]:
        """For each question the k best chunks, best first."""
        if not questions or not self._chunks:
            return [[] for _ in questions]
        return [self._best(scores, k, kind) for scores in self._scores(questions, kind)]

    def _scores(self, questions: Sequence[str], kind: SearchKind) -> Iterable[Scores]:
        """For each question the scores of all chunks."""
        if kind == "bm25" or self._questions is None:
            return map(self._by_words.scores, questions)
        cosines = self._by_cosine.scores(self._questions.of(questions))
        if kind == "dense":
            return cosines
        by_words = map(self._by_words.scores, questions)
        return map(_fused, cosines, by_words)

    def _best(self, scores: Scores, k: int, kind: SearchKind) -> list[Chunk]:
        indices = top(scores, k)
        if kind == "bm25":
            # The others have no word of the question.
            indices = indices[scores[indices] > 0]
        hits: list[Chunk] = []
        for rank, (index, score) in enumerate(zip(indices.tolist(), scores[indices].tolist(), strict=True)):
            hit = object.__new__(Chunk)
            hit.__dict__.update(self._chunks[index].__dict__, rank=rank, score=score)
            if self._questions is not None:
                hit.__dict__["vector"] = self._vectors[index]
            hits.append(hit)
        return hits

    @cached_property
    def _by_cosine(self) -> CosineSearch:
        return CosineSearch(self._vectors)

    @cached_property
    def _by_words(self) -> BM25Search:
        return BM25Search([chunk.text for chunk in self._chunks])


def _fused(cosines: Scores, by_words: Scores) -> Scores:
    """Both whole rankings as one, whatever k: so a larger k adds hits behind those of a smaller one."""
    found = top(by_words, len(by_words))
    return rrf([top(cosines, len(cosines)), found[by_words[found] > 0]], len(cosines))


class DocumentIndex:
    """Chunks, and their vectors where there is an embedder.

    Search is exact: every chunk is held against the question, so it suits a document or some hundred of them. For
    millions of chunks use a vector store, and `oprag.langchain` or `oprag.llama_index` over it.

    Args:
        texts: The texts of the chunks.
        metadata: What is known about each chunk; `source` and `chunk_index` are needed for source order.
        vectors: The embeddings, of shape (number of chunks, dimension); None without an embedder.
        embedder: Embeds the questions; None for an index that is searched by words alone.

    Raises:
        ChunkError: A text is no string, or there are not as many metadata as texts.
        EmbeddingError: The vectors have another shape, or are not finite, or the embedder is none.

    Example:
        >>> from oprag.embedding.static import LocalEmbedder
        >>> embedder = LocalEmbedder()
        >>> texts = {"pets": "Cats purr. Dogs bark. Parrots talk."}
        >>> index = DocumentIndex.from_texts(texts, embedder, embedder.tokenizer, size=5)
        >>> [hit.text for hit in index.search("Which animal barks?", k=1)]
        [' Dogs bark.']
    """

    def __init__(
        self,
        texts: Sequence[str],
        metadata: Sequence[Mapping[str, Any]],
        vectors: Any = None,
        embedder: Embedder | None = None,
    ) -> None:
        without = vectors is None and embedder is None
        if not without and not isinstance(embedder, Embedder):
            raise EmbeddingError(
                f"expected an embedder with name, embed_questions and embed_documents, got {type(embedder).__name__}; "
                "DualEncoder makes one of two functions",
                embedder,
            )
        if len(texts) != len(metadata):
            raise ChunkError(f"expected metadata for {len(texts)} chunks, got {len(metadata)}", metadata)
        self._vectors = np.zeros((len(texts), 0), np.float32) if embedder is None else as_vectors(vectors, len(texts))
        self._vectors.flags.writeable = False
        # Settings of the embedder may be changed after this.
        self._made_with = None if embedder is None else embedder.name
        self._questions = None if embedder is None else QuestionVectors(embedder, self._vectors.shape[1] or None)
        # Checked and built once; a hit is a copy with its rank and score.
        self._chunks = [
            Chunk(text, row, metadata=data, id=str(row))
            for row, (text, data) in enumerate(zip(texts, metadata, strict=True))
        ]
        self._search = Search(self._chunks, self._vectors, self._questions)

    @classmethod
    def from_texts(
        cls,
        sources: Mapping[Any, str | Sequence[str]],
        embedder: Embedder | None,
        tokenizer: Any,
        *,
        splitter: Splitter = "tokens",
        size: int | None = None,
        overlap: int | None = None,
        progress: Progress | None = None,
    ) -> DocumentIndex:
        """Split, stamp and embed whole texts.

        Args:
            sources: The text of each source by its name or path. A list of texts is its pages: each is split by
                itself, and its chunks have their `page`, from 1.
            embedder: Embeds chunks and questions; None for an index that is searched by words alone.
            tokenizer: What `split_tokens` takes.
            splitter: "tokens" for `split_tokens`, "words" for windows of words, "recursive" for `split_recursive`.
            size: Tokens in a chunk, or words; by default 128 tokens, 300 words or, recursive, 1,000 tokens.
            overlap: Tokens or words that neighbours share; by default none or, recursive, a tenth of the size.
            progress: Called with the number of embedded chunks and the number of all.

        Raises:
            ChunkError: `sources` is no mapping, or a text is no string.
            MissingSourceError: A source has no name.
            OptionError: There is no such splitter, or it cannot split so.
            EmbeddingError: The embedder gave vectors of another shape, or not finite.
            MissingExtraError: The recursive splitter is not installed.
        """
        texts, metadata = split_sources(sources, tokenizer, Split(splitter, size, overlap))
        if embedder is None:
            return cls(texts, metadata)
        return cls(texts, metadata, embed_in_batches(texts, embedder, progress), embedder)

    def __len__(self) -> int:
        return len(self._chunks)

    def __repr__(self) -> str:
        vectors = "no vectors"
        if self._questions is not None:
            vectors = f"vectors of dimension {self._vectors.shape[1]} of {quoted(self._questions.name)}"
        return f"DocumentIndex({counted(len(self), 'chunk')}, {vectors})"

    @property
    def embedder(self) -> Embedder | None:
        """What embeds the questions, and remembers the last few; None where the index is searched by words alone."""
        return self._questions

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
        """The unit vectors of the chunks, of shape (number of chunks, dimension); they cannot be written to.

        Without an embedder the dimension is 0.
        """
        return self._vectors

    def question_vector(self, question: str) -> NDArray[np.float32]:
        """The unit vector of a question, of shape (dimension,); the last few are remembered.

        Raises:
            QueryError: The question is empty or no string.
            EmbeddingError: The index has no embedder, or it gave a vector of another dimension.
        """
        check_question(question)
        if self._questions is None:
            raise EmbeddingError("this index was made without an embedder, so no question can be embedded", self)
        vector: NDArray[np.float32] = self._questions.of([question])[0]
        vector.flags.writeable = False
        return vector

    def search(self, question: str, k: int, search: SearchKind = "dense") -> list[Chunk]:
        """The k chunks that fit the question best, best first; of equals the first added.

        Args:
            question: The question.
            k: The most chunks.
            search: "dense" ranks all chunks by cosine; "bm25" those that share a word with the question, by BM25;
                "hybrid" fuses both whole rankings. The score of a hit is that of its search.

        Raises:
            QueryError: The question is empty or no string.
            OptionError: k is no whole number from 1, there is no such kind of search, or it needs an embedder.
            EmbeddingError: The embedder gave a vector of another dimension.
            MissingExtraError: BM25 is not installed.
        """
        return self.search_all([question], k, search)[0]

    def search_all(self, questions: Sequence[str], k: int, search: SearchKind = "dense") -> list[list[Chunk]]:
        """As `search`, for many questions with one product: several times faster than one after the other.

        Args:
            questions: The questions.
            k: The most chunks for each.
            search: As for `search`.

        Returns:
            One list of chunks for each question.
        """
        if type(k) is not int or k < 1:
            raise OptionError(f"k must be a whole number from 1, got {describe(k)}", k)
        if isinstance(questions, str):
            raise QueryError("expected a list of questions, got one; search() takes that", questions)
        asked = list(questions)
        for question in asked:
            check_question(question)
        self._search.check(search)
        return self._search.hits(asked, k, search)

    def check_search(self, search: Any) -> None:
        """Refuse a kind of search that this index cannot do.

        Raises:
            OptionError: There is no such kind of search, or it needs an embedder and the index has none.
        """
        self._search.check(search)

    def save(self, path: str | os.PathLike[str], *, private: bool = False) -> None:
        """Write the index to one file, without pickle; a file that is there is replaced in one step.

        The file contains the whole text of the chunks.

        Args:
            path: The file. A link is followed, and the permissions are those of any new file.
            private: Give nobody else access to the file (mode 0600), and replace a link instead of following it.

        Raises:
            IndexFileError: The metadata holds something that JSON cannot.
        """
        texts = [chunk.text for chunk in self._chunks]
        metadata = [dict(chunk.metadata) for chunk in self._chunks]
        write_index(Path(path), self._made_with, Contents(texts, metadata, self._vectors), private=private)

    @classmethod
    def load(cls, path: str | os.PathLike[str], embedder: Embedder | None) -> DocumentIndex:
        """Read a saved index. Nothing in it is run, and what it takes is bounded by the size of the file.

        Whoever wrote the file decides what a search returns: vectors are not compared with the texts, which would be to
        embed them again.

        Args:
            path: The file.
            embedder: The one that the index was made with; None where it was made with none.

        Raises:
            FileNotFoundError: There is no such file.
            IndexFileError: The file is not a saved index, is damaged, or was written by a newer version.
            EmbeddingError: The index was made with another embedder.
        """
        if embedder is not None and not isinstance(embedder, Embedder):
            raise EmbeddingError(f"expected an oprag.Embedder, got {type(embedder).__name__}", embedder)
        path = Path(path)
        try:
            with open_regular(path) as file:
                texts, metadata, vectors = read_index(file, path, embedder)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise IndexFileError(f"cannot read the index {path}: {error.strerror or error}", path) from error
        try:
            return cls(texts, metadata, None if embedder is None else vectors, embedder)
        except (ChunkError, EmbeddingError) as error:
            raise IndexFileError(f"{path} is damaged: {error}", path) from error
