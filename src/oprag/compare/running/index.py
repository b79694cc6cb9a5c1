"""An index of some documents and the vectors of texts; chunks, vectors and hits are cached across runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oprag.assembly.neighbors import NeighborReader, neighbors_among
from oprag.chunk import Chunk, changed
from oprag.compare.data.data_set import page_starts
from oprag.compare.db.cache import WorkCache
from oprag.compare.db.keys import document_key, key_of
from oprag.compare.db.records import ChunkRecord, Hit, IndexRecord, Retrieval, VectorRecord
from oprag.compare.providers.names import qualified_name
from oprag.compare.stores import Store
from oprag.context import ContextInputs
from oprag.embedding.cache import Kind, text_keys
from oprag.embedding.cosine import as_vectors
from oprag.embedding.embedder import Embedder
from oprag.embedding.question_vectors import QuestionVectors
from oprag.index.document_index import DocumentIndex, SearchKind
from oprag.index.splitting import LONE_SURROGATE, Split, offsets_of, pieces_of
from oprag.positions.placing import place as find_places
from oprag.token_counters import NamedTokenizer

__all__ = ["Index", "IndexSearch", "VectorSource"]


class IndexSearch(NamedTuple):
    """The parameters of a search."""

    kind: SearchKind  # how chunks are ranked
    store: str  # name of the vector store
    depth: int | None  # number of chunks to return; None for all


_WARMUP_QUESTION = "anything"
_BATCH_HITS = 100_000
_BATCH_TEXTS = 256


class VectorSource:
    """A cached embedder: missing vectors are embedded and stored in batches."""

    def __init__(self, embedder: Embedder, cache: WorkCache, *, keep_questions: bool = True) -> None:
        self.embedder = embedder
        self.name = embedder.name
        self._cache = cache
        self._keep_questions = keep_questions
        self._questions: dict[str, NDArray[np.float32]] = {}

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape (number of texts, dimension)."""
        return self._stacked(texts, self._vectors(texts, "document"))

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape (number of texts, dimension)."""
        new = [text for text in dict.fromkeys(texts) if text not in self._questions]
        if not self._keep_questions and new:
            self._questions |= zip(new, as_vectors(self.embedder.embed_questions(new), len(new)), strict=True)
        else:
            self._questions |= self._vectors(new, "question")
        return self._stacked(texts, self._questions)

    def forget_questions(self) -> None:
        """Drop the in-memory vectors of questions."""
        self._questions.clear()

    def _stacked(self, texts: Sequence[str], vectors: Mapping[str, NDArray[np.float32]]) -> NDArray[np.float32]:
        return np.stack([vectors[text] for text in texts]) if texts else np.zeros((0, 0), np.float32)

    def _vectors(self, texts: Sequence[str], kind: Kind) -> dict[str, NDArray[np.float32]]:
        keys = dict(zip(distinct := list(dict.fromkeys(texts)), text_keys(distinct, kind), strict=True))
        stored = self._cache.get(VectorRecord, [(self.name, key) for key in keys.values()])
        known = {text: one.vector for text, one in zip(keys, stored, strict=True) if one is not None}
        missing = [text for text in keys if text not in known]
        embed = self.embedder.embed_questions if kind == "question" else self.embedder.embed_documents
        dimension = next((len(vector) for vector in known.values()), None)
        for start in range(0, len(missing), _BATCH_TEXTS):
            batch = missing[start : start + _BATCH_TEXTS]
            vectors = as_vectors(embed(batch), len(batch), dimension)
            dimension = vectors.shape[1]
            self._cache.put(
                [VectorRecord(self.name, keys[text], row) for text, row in zip(batch, vectors, strict=True)]
            )
            known |= zip(batch, vectors, strict=True)
        return known


class Index:
    """The chunks of some documents.

    Args:
        documents: Texts, or lists of pages, by name.
        split: How they are split, in tokens of the tokenizer.
        tokenizer: The tokenizer of the embedder.
        vectors: The embedder.
        cache: Where chunks and hits are stored.
        searches: All planned searches: the exact index is searched once, to the greatest depth.
        stores: Factories of custom stores, by name.
        keep_hits: Whether hits are cached, and found in the cache.
    """

    def __init__(
        self,
        documents: Mapping[str, str | Sequence[str]],
        split: Split,
        tokenizer: NamedTokenizer,
        vectors: VectorSource,
        cache: WorkCache,
        *,
        searches: Iterable[IndexSearch] = (),
        stores: Mapping[str, Callable[[Any], Any]] | None = None,
        keep_hits: bool = True,
    ) -> None:
        self._documents = documents
        self._split = split.complete()
        self._tokenizer = tokenizer
        self._source = vectors
        self._cache = cache
        self._factories = stores or {}
        self._keep_hits = keep_hits
        self._stores: dict[str, Store] = {}
        self._ready: set[tuple[IndexSearch, bool]] = set()
        self._deepest: dict[str, int] = {}  # the largest finite depth of each kind of search in the exact index
        for search in searches:
            if search.store == "index" and search.depth is not None:
                self._deepest[search.kind] = max(search.depth, self._deepest.get(search.kind, 0))
        self._hits: dict[tuple[str, IndexSearch], Sequence[Hit]] = {}
        contents = [[name, document_key(text)] for name, text in documents.items()]
        self.key = key_of("index", contents, list(self._split), tokenizer.identity)

    @cached_property
    def pieces(self) -> Sequence[ChunkRecord]:
        """The chunks by row, as places without text."""
        (known,) = self._cache.get(IndexRecord, [self.key])
        if known is not None:
            return known.pieces
        split, tokenizer = self._split, self._tokenizer.tokenizer
        count = offsets_of(tokenizer) if split.splitter == "words" else None
        pieces = [
            ChunkRecord(
                place["source"],
                place.get("page"),
                window.start,
                window.end,
                window.tokens if count is None else sum(1 for _ in count(LONE_SURROGATE.sub("\ufffd", window.text))),
            )
            for window, place in pieces_of(self._documents, tokenizer, split)
        ]
        self._cache.put([IndexRecord(self.key, pieces)])
        return pieces

    @cached_property
    def chunks(self) -> list[Chunk]:
        """The chunks by row, with the metadata that stamping at ingestion would write, and with positions."""
        numbers: dict[str, int] = {}
        chunks: list[Chunk] = []
        for row, piece in enumerate(self.pieces):
            number = numbers[piece.document] = numbers.get(piece.document, -1) + 1
            place: dict[str, Any] = {"source": piece.document, "chunk_index": number}
            document = self._documents[piece.document]
            if piece.page is not None:
                place["page"] = piece.page
                document = document[piece.page - 1]
            place |= {"start_index": piece.start, "end_index": piece.end}
            chunks.append(Chunk(str(document[piece.start : piece.end]), row, metadata=place, id=str(row)))
        # Every chunk is stamped, so its position does not depend on others and can be found once for all contexts.
        return find_places(chunks, source_key=None, position_key=None).chunks

    @cached_property
    def spans(self) -> list[tuple[str, int, int]]:
        """The document, start and end of each chunk by row; offsets are those in the whole text of the document."""
        starts = {name: page_starts(text) for name, text in self._documents.items() if not isinstance(text, str)}
        found: list[tuple[str, int, int]] = []
        for piece in self.pieces:
            start = 0 if piece.page is None else starts[piece.document][piece.page - 1]
            found.append((piece.document, start + piece.start, start + piece.end))
        return found

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """The unit vectors of all chunks, of shape (number of chunks, dimension)."""
        return self._source.embed_documents([chunk.text for chunk in self.chunks])

    @cached_property
    def _neighbors(self) -> NeighborReader:
        return neighbors_among(self.chunks)

    def _read_neighbors(self, chunk: Chunk, number: int) -> Iterable[Chunk]:
        return self._neighbors(chunk, number)  # made for the first context that reads them

    def make_ready(self, search: IndexSearch, *, with_vectors: bool) -> None:
        """Split, embed and index now instead of in the first search."""
        if (search, with_vectors) not in self._ready:
            if with_vectors:
                _ = self.vectors
            self.given(_WARMUP_QUESTION, search, with_vectors=with_vectors)
            self._ready.add((search, with_vectors))

    def forget(self) -> None:
        """Forget retrievals, so that the next question is searched for again."""
        self._hits.clear()
        # Indexes are kept, since all questions share them.
        if "_dense_index" in vars(self) and isinstance(embedder := self._dense_index.embedder, QuestionVectors):
            embedder.forget()

    def close(self) -> None:
        """Close the stores."""
        for store in self._stores.values():
            store.close()
        self._stores.clear()

    def prepare(self, questions: Sequence[str], searches: Iterable[IndexSearch]) -> None:
        """Search for these questions in batches, and cache the retrievals."""
        found: list[Retrieval] = []
        for search in dict.fromkeys(self._shared(search) for search in searches):
            if search.depth is None:
                continue  # complete rankings would need too much memory, so each is computed when needed
            new: list[str] = []
            uncached = [question for question in dict.fromkeys(questions) if (question, search) not in self._hits]
            keys = [self._key(question, search) for question in uncached]
            known = self._cache.get(Retrieval, keys) if self._keep_hits else [None] * len(keys)
            for question, retrieval in zip(uncached, known, strict=True):
                if retrieval is None:
                    new.append(question)
                else:
                    self._hits[question, search] = retrieval.hits
            batch_size = max(1, _BATCH_HITS // search.depth)
            for start in range(0, len(new), batch_size):
                batch = new[start : start + batch_size]
                for question, hits in zip(batch, self._search(batch, search), strict=True):
                    self._hits[question, search] = hits
                    found.append(Retrieval(self._key(question, search), hits))
        if found and self._keep_hits:
            _ = self.pieces  # stored first, since hits refer to them
            self._cache.put(found)

    def given(self, question: str, search: IndexSearch, *, with_vectors: bool) -> ContextInputs:
        """The inputs of a context for a question."""
        hits = self._hits_of(question, self._shared(search))[: search.depth]
        vectors: Any = [None] * len(hits)
        vector = None
        if with_vectors:
            vectors = self._vectors_of([hit.row for hit in hits])
            (vector,) = self._source.embed_questions([question])
        chunks = [
            changed(self.chunks[hit.row], rank=rank, score=hit.score, vector=row_vector)
            for rank, (hit, row_vector) in enumerate(zip(hits, vectors, strict=True))
        ]
        return ContextInputs(chunks, vector, self._read_neighbors)

    def _hits_of(self, question: str, search: IndexSearch) -> Sequence[Hit]:
        if search.depth is None:
            return self._search([question], search)[0]
        if (question, search) not in self._hits:
            self.prepare([question], [search])
        return self._hits[question, search]

    def _shared(self, search: IndexSearch) -> IndexSearch:
        """The deepest search that includes this one: the exact index ranks the same chunks first at every depth."""
        if search.store != "index" or search.depth is None:
            return search
        return search._replace(depth=max(search.depth, self._deepest.get(search.kind, 0)))

    def _search(self, questions: Sequence[str], search: IndexSearch) -> list[list[Hit]]:
        if not questions or not self.chunks:
            return [[] for _ in questions]
        depth = len(self.chunks) if search.depth is None else min(search.depth, len(self.chunks))
        if search.store == "index":
            index = self._bm25_index if search.kind == "bm25" else self._dense_index
            found = index.search_all(questions, depth, search.kind)
            return [[Hit(int(chunk.id or 0), chunk.score) for chunk in hits] for hits in found]
        store = self._store(search.store)
        return [
            [Hit(*hit) for hit in store.search(vector, depth)] for vector in self._source.embed_questions(questions)
        ]

    def _store(self, name: str) -> Store:
        if name not in self._stores:
            texts = [chunk.text for chunk in self.chunks]
            self._stores[name] = Store(name, texts, self.vectors, self._factories.get(name))
        return self._stores[name]

    @cached_property
    def _dense_index(self) -> DocumentIndex:
        return DocumentIndex([chunk.text for chunk in self.chunks], [{}] * len(self.chunks), self.vectors, self._source)

    @cached_property
    def _bm25_index(self) -> DocumentIndex:
        # BM25 needs no vectors.
        return DocumentIndex([chunk.text for chunk in self.chunks], [{}] * len(self.chunks))

    def _vectors_of(self, rows: Sequence[int]) -> Any:
        # BM25 needs no other vectors.
        if "vectors" in vars(self) or len(rows) == len(self.chunks):
            return self.vectors[rows]
        return self._source.embed_documents([self.chunks[row].text for row in rows])

    def _embedder(self, search: IndexSearch) -> str | None:
        return None if search.kind == "bm25" else self._source.name

    def _key(self, question: str, search: IndexSearch) -> str:
        factory = self._factories.get(search.store)
        identity = search.store if factory is None else qualified_name(factory, search.store)
        return key_of("retrieval", self.key, self._embedder(search), list(search), identity, question)
