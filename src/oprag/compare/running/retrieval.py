"""The indexes, contexts, vectors and whole texts of an experiment; shared ones are computed once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oprag.chunk import Chunk, Place, PositionKind, Span, changed
from oprag.compare.data.data_set import Evidence, Question, page_starts, whole_text
from oprag.compare.db.records import WorkCache
from oprag.compare.grid import Cell
from oprag.compare.metrics.functions import touching
from oprag.compare.running.prepared import PreparedExperiment
from oprag.compare.stores import Store
from oprag.context import Context, ContextInputs, assemble
from oprag.embedding.cosine import as_vectors
from oprag.embedding.embedder import Embedder
from oprag.embedding.vector_cache import Kind, text_keys
from oprag.index.document_index import ExactSearch, SearchKind
from oprag.index.splitting import Split, pieces_of
from oprag.index.tokenizers import NamedTokenizer, counter_of
from oprag.methods.run import Embed, ReadSources, Retrieve
from oprag.pipeline.neighbors import NeighborReader, neighbors_among

__all__ = ["Index", "Retrieval", "VectorSource"]

_BATCH_TEXTS = 256


class VectorSource:
    """A cached embedder: missing vectors are embedded and stored in batches; questions also stay in memory."""

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
        self._questions |= self._vectors(new, "question")
        return self._stacked(texts, self._questions)

    def forget_questions(self) -> None:
        """Drop the in-memory vectors of questions."""
        self._questions.clear()

    def _stacked(self, texts: Sequence[str], vectors: Mapping[str, NDArray[np.float32]]) -> NDArray[np.float32]:
        return np.stack([vectors[text] for text in texts]) if texts else np.zeros((0, 0), np.float32)

    def _vectors(self, texts: Sequence[str], kind: Kind) -> dict[str, NDArray[np.float32]]:
        keys = dict(zip(distinct := list(dict.fromkeys(texts)), text_keys(distinct, kind), strict=True))
        is_kept = kind == "document" or self._keep_questions
        stored = self._cache.vectors(self.name, [*keys.values()]) if is_kept else [None] * len(keys)
        known = {text: vector for text, vector in zip(keys, stored, strict=True) if vector is not None}
        missing = [text for text in keys if text not in known]
        embed = self.embedder.embed_questions if kind == "question" else self.embedder.embed_documents
        dimension = next((len(vector) for vector in known.values()), None)
        for start in range(0, len(missing), _BATCH_TEXTS):
            batch = missing[start : start + _BATCH_TEXTS]
            vectors = as_vectors(embed(batch), len(batch), dimension)
            dimension = vectors.shape[1]
            if is_kept:
                self._cache.put_vectors(self.name, [keys[text] for text in batch], vectors)
            known |= zip(batch, vectors, strict=True)
        return known


class Index:
    """The chunks of some documents, and what is found among them."""

    def __init__(
        self,
        documents: Mapping[str, str | Sequence[str]],  # texts, or lists of pages, by name
        split: Split,
        tokenizer: NamedTokenizer,
        vectors: VectorSource,
        *,
        stores: Mapping[str, Callable[[Any], Any]] | None = None,
    ) -> None:
        self._source = vectors
        self._factories = stores or {}
        self._stores: dict[str, Store] = {}
        self._touching: dict[Sequence[Evidence], frozenset[int]] = {}
        count = counter_of(tokenizer.tokenizer) if split.splitter == "words" else None
        starts = {name: page_starts(text) for name, text in documents.items()}
        self.chunks: list[Chunk] = []
        self.spans: list[tuple[str, int, int]] = []  # document, start and end in its whole text
        self.tokens: list[int] = []  # by the tokenizer
        for row, (window, stamp) in enumerate(pieces_of(documents, tokenizer.tokenizer, split)):
            source, page = stamp["source"], stamp.get("page")
            # The splitter knows the place of each chunk, so that it is not decided again for each context.
            span = Span(window.start, window.end, page)
            place = Place((stamp["chunk_index"],), PositionKind.STAMPED, "chunk_index", span)
            self.chunks.append(Chunk(window.text, row, source, stamp, id=str(row), place=place))
            first = starts[source][(page or 1) - 1]
            self.spans.append((source, first + window.start, first + window.end))
            self.tokens.append(window.tokens if count is None else count(window.text))

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """The unit vectors of all chunks, of shape (number of chunks, dimension)."""
        return self._source.embed_documents(self._texts)

    def touching(self, evidence: Sequence[Evidence]) -> frozenset[int]:
        """The rows of the chunks that overlap the evidence."""
        if evidence not in self._touching:
            self._touching[evidence] = touching(self.spans, evidence)
        return self._touching[evidence]

    @cached_property
    def _all_neighbors(self) -> NeighborReader:
        return neighbors_among(self.chunks)

    def _neighbors(self, chunk: Chunk, number: int) -> Iterable[Chunk]:
        return self._all_neighbors(chunk, number)  # made for the first context that reads them

    def close(self) -> None:
        """Close the stores."""
        for store in self._stores.values():
            store.close()
        self._stores.clear()

    def given(
        self, question: str, search: SearchKind, store: str, depth: int | None, *, with_vectors: bool
    ) -> ContextInputs:
        """The inputs of a context for a question: the result of a search, of all chunks if `depth` is None."""
        hits = self._search(question, search, store, min(depth or len(self.chunks), len(self.chunks)))
        vectors: Any = [None] * len(hits)
        vector = None
        if with_vectors:
            vectors = self.vectors[[row for row, _ in hits]]
            (vector,) = self._source.embed_questions([question])
        chunks = [
            changed(self.chunks[row], rank=rank, score=score, vector=row_vector)
            for rank, ((row, score), row_vector) in enumerate(zip(hits, vectors, strict=True))
        ]
        return ContextInputs(chunks, vector, self._neighbors)

    def _search(self, question: str, search: SearchKind, store: str, depth: int) -> list[tuple[int, float]]:
        """The rows and scores of the chunks found, best first."""
        if not self.chunks:
            return []
        if search == "bm25":
            return self._by_words.search(question, None, depth, "bm25")
        (vector,) = self._source.embed_questions([question])
        if store == "index":
            return self._by_vectors.search(question, vector, depth, search)
        if store not in self._stores:
            self._stores[store] = Store(store, self._texts, self.vectors, self._factories.get(store))
        return self._stores[store].search(vector, depth)

    @property
    def _texts(self) -> list[str]:
        return [chunk.text for chunk in self.chunks]

    @cached_property
    def _by_vectors(self) -> ExactSearch:
        return ExactSearch(self._texts, self.vectors)

    @cached_property
    def _by_words(self) -> ExactSearch:
        return ExactSearch(self._texts, np.empty((0, 0), np.float32))  # BM25 needs no vectors


_WARMUP_QUESTION = "anything"
_MAX_INDEXES = 32
# Chunks of all contexts in memory, about half a kilobyte each. A context with k=128 has 128; a context limited only by
# a token budget has all chunks of its documents, kept or dropped.
_MAX_CHUNKS = 100_000


class Retrieval:
    """Contexts, vectors and texts, by cell and question.

    All questions of a data set are embedded at once, unless answers are measured: then each question of each answer is.
    """

    def __init__(self, prepared: PreparedExperiment, cache: WorkCache, *, measures: bool = False) -> None:
        self.measures = measures
        self._experiment = prepared.experiment
        self._embedders = prepared.embedders
        self._vectors = {
            name: VectorSource(embedder, cache, keep_questions=not measures)
            for name, embedder in prepared.embedders.items()
        }
        self._embedded: set[tuple[str, str]] = set()  # data sets whose questions an embedder has embedded
        self._indexes: dict[Hashable, Index] = {}  # the most recently used last
        self._found: dict[Hashable, tuple[ContextInputs, dict[Hashable, Context]]] = {}
        self._chunks = 0  # of all of them

    def fetch(self, cell: Cell, question: Question, request: Retrieve | Embed | ReadSources) -> Any:
        """The contexts, vectors or texts that a method requests for a question."""
        if isinstance(request, Retrieve):
            return tuple(self.contexts(cell, question, request.questions))
        if isinstance(request, Embed):
            # Texts of an answer that is measured are embedded again, too.
            source: Any = (self._embedders if self.measures else self._vectors)[cell.embedder]
            return source.embed_questions(request.questions), source.embed_documents(request.texts)
        return tuple(self.whole_text(cell, name) for name in request.sources)

    def contexts(self, cell: Cell, question: Question, texts: Sequence[str]) -> list[Context]:
        """The context of each text, which is a question or a variant of it, in the documents of the question."""
        index = self.index(cell, question.documents)
        if self.embeds(cell, texts):
            place = cell.data, cell.embedder
            if not self.measures and place not in self._embedded:
                self._embedded.add(place)
                texts_of_all = [one.text for one in self._experiment.data[cell.data].questions]
                self._vectors[cell.embedder].embed_questions(texts_of_all)
            self._vectors[cell.embedder].embed_questions(texts)  # in one batch
        return [self._context(cell, question.documents, index, text) for text in texts]

    def embeds(self, cell: Cell, questions: Sequence[str]) -> Sequence[str]:
        """The questions that are embedded for a search: all or, for bm25 without thresholds, none."""
        return questions if cell.search != "bm25" or cell.context_options.needs_vectors else ()

    def embedded_tokens(self, cell: Cell, texts: Iterable[str]) -> int:
        """The number of tokens of the texts, by the tokenizer of the cell's embedder."""
        embedder = self._embedders.get(cell.embedder)
        return 0 if embedder is None else sum(embedder.tokenizer(text) for text in texts)

    def whole_text(self, cell: Cell, name: str) -> str:
        """The whole text of a document."""
        return whole_text(self._experiment.data[cell.data].documents[name])

    def whole_texts(self, cell: Cell) -> Iterator[tuple[str, str]]:
        """The name and the whole text of each document of the data set."""
        return ((name, self.whole_text(cell, name)) for name in self._experiment.data[cell.data].documents)

    def index(self, cell: Cell, documents: tuple[str, ...]) -> Index:
        """The index of these documents."""
        place = cell.data, documents, cell.split, cell.embedder
        index = self._indexes.pop(place, None)
        if index is None:
            texts = self._experiment.data[cell.data].documents
            tokenizer, vectors = self._embedders[cell.embedder].tokenizer, self._vectors[cell.embedder]
            contents = {name: texts[name] for name in documents}
            index = Index(contents, cell.split, tokenizer, vectors, stores=self._experiment.stores)
        self._indexes[place] = index
        while len(self._indexes) > _MAX_INDEXES:
            self._indexes.pop(next(iter(self._indexes))).close()
        return index

    def make_ready(self, cell: Cell, question: Question) -> None:
        """Do what does not belong to an answer: build the index, load the embedder, forget earlier searches."""
        if cell.embedder:
            with_vectors = bool(self.embeds(cell, [question.text]))
            search = cell.search, cell.store, cell.context_options.candidates
            self.index(cell, question.documents).given(_WARMUP_QUESTION, *search, with_vectors=with_vectors)
        self._forget()
        for source in self._vectors.values():
            source.forget_questions()

    def close(self) -> None:
        """Close the stores."""
        for index in self._indexes.values():
            index.close()
        self._indexes.clear()

    def _context(self, cell: Cell, documents: tuple[str, ...], index: Index, question: str) -> Context:
        options = cell.context_options
        search = cell.search, cell.store, options.candidates
        place = cell.data, documents, cell.split, cell.embedder, search, question, options.needs_vectors
        inputs, contexts = self._found.get(place) or (
            index.given(question, *search, with_vectors=options.needs_vectors),
            dict[Hashable, Context](),
        )
        if (key := (options, cell.options.cite)) not in contexts:
            context = assemble(inputs, cell.options.numbered(options))
            # Questions follow each other, so contexts of earlier ones are rarely needed again.
            if self._chunks > _MAX_CHUNKS:
                self._forget()
            self._chunks += len(inputs.chunks) + len(context.kept) + len(context.dropped)
            contexts[key] = context
            self._found[place] = inputs, contexts
        return contexts[key]

    def _forget(self) -> None:
        self._found.clear()
        self._chunks = 0
