"""The embedded index: chunks of whole documents, searched exactly by their vectors, by words, or by both."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from oprag.assembly.neighbors import NeighborReader, neighbors_among
from oprag.chunk import Chunk, changed, counted, quoted
from oprag.embedding.cosine import CosineSearch, as_vectors, top
from oprag.embedding.embedder import Embedder
from oprag.embedding.question_vectors import QuestionVectors
from oprag.errors import ChunkError, EmbeddingError, IndexFileError, OptionError, QueryError
from oprag.files.opening import open_regular
from oprag.index.bm25 import BM25Search
from oprag.index.file import Contents, read_index, write_index
from oprag.index.fusion import rrf
from oprag.index.splitting import Split, Splitter, pieces_of
from oprag.masking import describe
from oprag.options import check_choice, check_question

__all__ = ["DocumentIndex", "SearchKind"]

SearchKind = Literal["dense", "bm25", "hybrid"]
"""How an index is searched: by the cosine of vectors, by the words of the question, or by both, fused by rank."""

_Scores = NDArray[np.floating[Any]]

# Texts that are embedded at once.
_BATCH = 256


class DocumentIndex:
    """Chunks, and their vectors where there is an embedder.

    Search is exact: every chunk is compared with the question, so it suits a document or some hundred of them. For
    millions of chunks use a vector store, and `oprag.langchain` or `oprag.llama_index` over it.

    Args:
        texts: The texts of the chunks.
        metadata: The metadata of each chunk; `source` and `chunk_index` are needed for source order.
        vectors: The embeddings, of shape (number of chunks, dimension); None without an embedder.
        embedder: Embeds the questions; None for an index that is searched by words alone.

    Raises:
        ChunkError: A text is not a string, or there are not as many metadata as texts.
        EmbeddingError: The vectors have another shape, or are not finite, or `embedder` is not an embedder.

    Example:
        >>> from oprag.embedding.static import LocalEmbedder
        >>> texts = {"pets": "Cats purr. Dogs bark. Parrots talk."}
        >>> index = DocumentIndex.from_texts(texts, size=2)
        >>> [hit.text for hit in index.search("Do dogs fly?", k=1)]
        ['Dogs bark. ']
        >>> index = DocumentIndex.from_texts(texts, LocalEmbedder(), size=2)
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

    @classmethod
    def from_texts(
        cls,
        sources: Mapping[Any, str | Sequence[str]],
        embedder: Embedder | None = None,
        tokenizer: Any = None,
        *,
        splitter: Splitter | None = None,
        size: int | None = None,
        overlap: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> DocumentIndex:
        """Split, stamp and embed whole texts.

        The sources are enough: they are then split into windows of words and searched with BM25.

        Args:
            sources: The text of each source by its name or path. A list of texts is its pages: each is split by
                itself, and its chunks have their `page`, from 1.
            embedder: Embeds chunks and questions; None for an index that is searched by words alone.
            tokenizer: What `split_tokens` takes; not needed for windows of words.
            splitter: "tokens" for `split_tokens`, "words" for windows of words, "recursive" for `split_recursive`; by
                default "tokens" with a tokenizer and "words" without.
            size: Tokens in a chunk, or words; by default 128 tokens, 300 words or, recursive, 1,000 tokens.
            overlap: Tokens or words that neighbors share; by default none or, recursive, a tenth of the size.
            progress: Called with the number of embedded chunks and the number of all.

        Raises:
            ChunkError: `sources` is not a mapping, or a text is not a string.
            MissingSourceError: A source has no name.
            OptionError: `splitter` is unknown, or `size` or `overlap` is out of range.
            TokenizerError: The tokenizer is of another kind, or the splitter needs one.
            EmbeddingError: The embedder gave vectors of another shape, or not finite.
            MissingExtraError: The recursive splitter is not installed.
        """
        if splitter is None:
            splitter = "words" if tokenizer is None else "tokens"
        pieces = list(pieces_of(sources, tokenizer, Split(splitter, size, overlap)))
        texts, metadata = [piece.window.text for piece in pieces], [piece.place for piece in pieces]
        if embedder is None:
            return cls(texts, metadata)
        return cls(texts, metadata, _embedded(texts, embedder, progress), embedder)

    def __len__(self) -> int:
        return len(self._chunks)

    def __repr__(self) -> str:
        vectors = "no vectors"
        if self._questions is not None:
            vectors = f"vectors of dimension {self._vectors.shape[1]} of {quoted(self._questions.name)}"
        return f"DocumentIndex({counted(len(self), 'chunk')}, {vectors})"

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

    @property
    def embedder(self) -> Embedder | None:
        """What embeds the questions, and remembers the last few; None where the index is searched by words alone."""
        return self._questions

    def question_vector(self, question: str) -> NDArray[np.float32]:
        """The unit vector of a question, of shape (dimension,); the last few are remembered.

        Args:
            question: The question.

        Raises:
            QueryError: The question is empty or not a string.
            EmbeddingError: The index has no embedder, or it gave a vector of another dimension.
        """
        check_question(question)
        if self._questions is None:
            raise EmbeddingError("this index was made without an embedder, so no question can be embedded", self)
        vector: NDArray[np.float32] = self._questions.of([question])[0]
        vector.flags.writeable = False
        return vector

    def search(self, question: str, k: int, search: SearchKind | None = None) -> list[Chunk]:
        """The k chunks that fit the question best, best first; of equals the first added.

        Args:
            question: The question.
            k: Maximum number of chunks.
            search: "dense" ranks all chunks by cosine; "bm25" those that share a word with the question, by BM25;
                "hybrid" fuses both whole rankings. By default "dense", or "bm25" for an index without an embedder. The
                score of a hit is that of its search.

        Raises:
            QueryError: The question is empty or not a string.
            OptionError: k is not a whole number from 1, `search` is unknown, or it needs an embedder.
            EmbeddingError: The embedder gave a vector of another dimension.
            MissingExtraError: BM25 is not installed.
        """
        return self.search_all([question], k, search)[0]

    def search_all(self, questions: Sequence[str], k: int, search: SearchKind | None = None) -> list[list[Chunk]]:
        """As `search`, for many questions with one product: several times faster than one after the other.

        Args:
            questions: The questions.
            k: Maximum number of chunks for each.
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
        kind = self.check_search(search)
        if not asked or not self._chunks:
            return [[] for _ in asked]
        return [self._best(scores, k, kind) for scores in self._scores(asked, kind)]

    def check_search(self, search: Any) -> SearchKind:
        """Refuse a kind of search that this index cannot do.

        Args:
            search: A kind of search, or None.

        Returns:
            `search`, or the default of this index for None.

        Raises:
            OptionError: `search` is unknown, or it needs an embedder and the index has none.
        """
        if search is None:
            return "bm25" if self._questions is None else "dense"
        check_choice("search", search, get_args(SearchKind))
        if search != "bm25" and self._questions is None:
            raise OptionError(
                f'search="{search}" needs vectors, and this index was made without an embedder; make it with '
                'one, or use search="bm25"',
                search,
            )
        kind: SearchKind = search
        return kind

    def _scores(self, questions: Sequence[str], kind: SearchKind) -> Iterable[_Scores]:
        """For each question the scores of all chunks."""
        if kind == "bm25" or self._questions is None:
            return map(self._by_words.scores, questions)
        cosines = self._by_cosine.scores(self._questions.of(questions))
        return cosines if kind == "dense" else map(_fused, cosines, map(self._by_words.scores, questions))

    def _best(self, scores: _Scores, k: int, kind: SearchKind) -> list[Chunk]:
        """The hits of a question, from the scores of all chunks."""
        rows = top(scores, k)
        if kind == "bm25":
            # The others have no word of the question.
            rows = rows[scores[rows] > 0]
        dense = self._questions is not None
        return [
            changed(self._chunks[row], rank=rank, score=score, vector=self._vectors[row] if dense else None)
            for rank, (row, score) in enumerate(zip(rows.tolist(), scores[rows].tolist(), strict=True))
        ]

    @cached_property
    def _by_cosine(self) -> CosineSearch:
        return CosineSearch(self._vectors)

    @cached_property
    def _by_words(self) -> BM25Search:
        return BM25Search([chunk.text for chunk in self._chunks])

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

    def save(self, path: str | os.PathLike[str], *, private: bool = False) -> None:
        """Write the index to one file, without pickle; an existing file is replaced in one step.

        The file contains the whole text of the chunks.

        Args:
            path: The file. A link is followed, and the permissions are those of any new file.
            private: Give nobody else access to the file (mode 0600), and replace a link instead of following it.

        Raises:
            IndexFileError: The metadata contains something that JSON cannot represent.
        """
        texts = [chunk.text for chunk in self._chunks]
        metadata = [dict(chunk.metadata) for chunk in self._chunks]
        write_index(Path(path), self._made_with, Contents(texts, metadata, self._vectors), private=private)

    @classmethod
    def load(cls, path: str | os.PathLike[str], embedder: Embedder | None = None) -> DocumentIndex:
        """Read a saved index. Nothing in it is run, and the memory that it takes is bounded by the size of the file.

        The author of the file decides what a search returns: vectors are not compared with the texts, since that would
        mean embedding them again.

        Args:
            path: The file.
            embedder: The one that the index was made with; None where it was made with none.

        Raises:
            FileNotFoundError: There is no such file.
            IndexFileError: The file is not a saved index, is corrupt, or was written by a newer version.
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


def _embedded(
    texts: Sequence[str], embedder: Embedder, progress: Callable[[int, int], None] | None
) -> NDArray[np.float32]:
    """Unit vectors of shape (number of texts, dimension), made in batches: progress shows, and memory stays bounded."""
    parts: list[NDArray[np.float32]] = []
    for start in range(0, len(texts), _BATCH):
        batch = texts[start : start + _BATCH]
        parts.append(as_vectors(embedder.embed_documents(batch), len(batch), parts[0].shape[1] if parts else None))
        if progress is not None:
            progress(start + len(batch), len(texts))
    return np.concatenate(parts) if parts else np.zeros((0, 0), dtype=np.float32)


def _fused(cosines: _Scores, by_words: _Scores) -> _Scores:
    """Both whole rankings as one, whatever k: so a larger k adds hits after those of a smaller one."""
    found = top(by_words, len(by_words))
    return rrf([top(cosines, len(cosines)), found[by_words[found] > 0]], len(cosines))
