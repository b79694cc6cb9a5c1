"""An index of some documents; chunks, vectors and retrievals are cached across runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oprag.assembly.neighbors import NeighborReader, neighbors_among
from oprag.chunk import Chunk, changed
from oprag.compare.data.data_set import page_starts
from oprag.compare.db.cache import WorkCache
from oprag.compare.db.keys import document_key, key_of
from oprag.compare.db.records import ChunkRecord, Hit, IndexRecord, Retrieval
from oprag.compare.running.vectors import VectorSource
from oprag.compare.stores import Store
from oprag.context import ContextInputs
from oprag.embedding.question_vectors import QuestionVectors
from oprag.index.document_index import DocumentIndex, SearchKind
from oprag.index.splitting import LONE_SURROGATE, Split, offsets_of, pieces_of
from oprag.positions.placing import place as find_places
from oprag.token_counters import NamedTokenizer

__all__ = ["Index", "IndexSearch", "Splitting"]


class IndexSearch(NamedTuple):
    """The parameters of a search."""

    kind: SearchKind  # how chunks are ranked
    store: str  # name of the vector store
    depth: int | None  # number of chunks to return; None for all


@dataclass(frozen=True)
class Splitting:
    """Splits documents into chunks."""

    split: Split
    tokenizer: NamedTokenizer  # the tokenizer of the embedder

    def pieces(self, documents: Mapping[str, str | Sequence[str]]) -> list[ChunkRecord]:
        """The chunks of the documents, as places without text."""
        count = None if self.split.splitter != "words" else offsets_of(self.tokenizer.tokenizer)
        return [
            ChunkRecord(
                place["source"],
                place.get("page"),
                window.start,
                window.end,
                window.tokens if count is None else sum(1 for _ in count(LONE_SURROGATE.sub("\ufffd", window.text))),
            )
            for window, place in pieces_of(documents, self.tokenizer.tokenizer, self.split)
        ]


_WARMUP_QUESTION = "anything"
_BATCH_HITS = 100_000


class Index:
    """The chunks of some documents."""

    def __init__(
        self,
        documents: Mapping[str, str | Sequence[str]],
        splitting: Splitting,
        vectors: VectorSource,
        cache: WorkCache,
        *,
        open_store: Callable[[str, Sequence[str], NDArray[np.float32]], Store],  # opens a store by name and fills it
        # All planned searches: the exact index is searched once, to the greatest depth.
        searches: Iterable[IndexSearch] = (),
        store_identities: Mapping[str, str] | None = None,  # by name, if they differ from the name
    ) -> None:
        self._documents = documents
        self._splitting = replace(splitting, split=splitting.split.complete())
        self._source = vectors
        self._cache = cache
        self._open_store = open_store
        self._store_identities = store_identities or {}
        self._stores: dict[str, Store] = {}
        self._deepest = _deepest(searches)
        self._hits: dict[tuple[str, IndexSearch], Sequence[Hit]] = {}
        contents = [[name, document_key(text)] for name, text in documents.items()]
        self.key = key_of("index", contents, list(self._splitting.split), splitting.tokenizer.identity)

    @cached_property
    def pieces(self) -> Sequence[ChunkRecord]:
        """The chunks by row, as places without text."""
        (known,) = self._cache.get(IndexRecord, [self.key])
        if known is not None:
            return known.pieces
        pieces = self._splitting.pieces(self._documents)
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
    def neighbors(self) -> NeighborReader:
        """Reads the chunks adjacent to a chunk."""
        return neighbors_among(self.chunks)

    def warm(self, questions: Sequence[str], searches: Iterable[IndexSearch]) -> None:
        """Split and embed the documents, unless all retrievals of these questions are cached."""
        distinct = list(dict.fromkeys(self._shared(search) for search in searches))
        keys = [
            self._key(question, search) for question in questions for search in distinct if search.depth is not None
        ]
        whole = any(search.depth is None for search in distinct)
        if not whole and None not in self._cache.get(Retrieval, keys):
            return
        _ = self.pieces
        if any(search.kind != "bm25" for search in distinct):
            _ = self.vectors

    def make_ready(self, search: IndexSearch) -> None:
        """Split, embed and index now instead of in the first search."""
        if not self.chunks:
            return
        if search.store != "index":
            self._store(search.store)
        elif search.kind == "bm25":
            self._bm25_index.search(_WARMUP_QUESTION, 1, "bm25")
        else:
            self._dense_index.search(_WARMUP_QUESTION, 1, search.kind)

    def forget(self) -> None:
        """Forget retrievals, so that the next question is searched for again."""
        self._hits.clear()
        # Indexes are kept, since all questions share them.
        embedder = self._dense_index.embedder if "_dense_index" in self.__dict__ else None
        if isinstance(embedder, QuestionVectors):
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
            known = self._cache.get(Retrieval, [self._key(question, search) for question in uncached])
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
                    found.append(self._record(question, search, hits))
        if found:
            _ = self.pieces  # stored first, since hits refer to them
            self._cache.put(found)

    def given(self, question: str, search: IndexSearch, *, with_vectors: bool, with_neighbors: bool) -> ContextInputs:
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
        return ContextInputs(chunks, vector, self.neighbors if with_neighbors else None)

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
            self._stores[name] = self._open_store(name, [chunk.text for chunk in self.chunks], self.vectors)
        return self._stores[name]

    @cached_property
    def _dense_index(self) -> DocumentIndex:
        return DocumentIndex(*self._contents, self.vectors, self._source)

    @cached_property
    def _bm25_index(self) -> DocumentIndex:
        # BM25 needs no vectors.
        return DocumentIndex(*self._contents)

    @property
    def _contents(self) -> tuple[list[str], list[Mapping[str, Any]]]:
        return [chunk.text for chunk in self.chunks], [chunk.metadata for chunk in self.chunks]

    def _vectors_of(self, rows: Sequence[int]) -> NDArray[np.float32]:
        if "vectors" in self.__dict__ or len(rows) == len(self.chunks):
            found: NDArray[np.float32] = self.vectors[list(rows)]
            return found
        return self._source.embed_documents([self.chunks[row].text for row in rows])

    def _key(self, question: str, search: IndexSearch) -> str:
        embedder = None if search.kind == "bm25" else self._source.name
        identity = self._store_identities.get(search.store, search.store)
        return key_of("retrieval", self.key, embedder, list(search), identity, question)

    def _record(self, question: str, search: IndexSearch, hits: Sequence[Hit]) -> Retrieval:
        return Retrieval(self._key(question, search), hits)


def _deepest(searches: Iterable[IndexSearch]) -> dict[str, int]:
    """The largest finite depth of each kind of search in the exact index."""
    deepest: dict[str, int] = {}
    for search in searches:
        if search.store == "index" and search.depth is not None:
            deepest[search.kind] = max(search.depth, deepest.get(search.kind, 0))
    return deepest
