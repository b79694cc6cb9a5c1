"""The contexts, vectors and whole texts of an experiment; shared ones are computed once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from oprag.compare.data.data_set import Question, whole_text
from oprag.compare.db.cache import WorkCache
from oprag.compare.providers.embedder import ExperimentEmbedder
from oprag.compare.running.index import Index, IndexSearch
from oprag.compare.running.lru_cache import LruCache
from oprag.compare.running.resolved import ResolvedExperiment
from oprag.compare.running.vectors import VectorSource
from oprag.compare.spec.grid import Cell
from oprag.context import Context, ContextInputs, assemble
from oprag.index.splitting import Split
from oprag.methods.effects import Embed, ReadSources, Retrieve

__all__ = ["Library", "search_of"]

_MAX_INDEXES = 16
# Chunks of all contexts in memory, about half a kilobyte each. A context with k=128 has 128; a context limited only by
# a token budget has all chunks of its documents, kept or dropped.
_MAX_CHUNKS = 100_000


class Library:
    """Contexts, vectors and texts, by cell and question."""

    def __init__(
        self,
        resolved: ResolvedExperiment,
        cache: WorkCache,
        *,
        embedders: Mapping[str, ExperimentEmbedder] | None = None,  # default: those of the experiment
        together: bool = True,  # whether the first question also searches for all others about the same documents
    ) -> None:
        self._resolved = resolved
        self._embedders = embedders or resolved.embedders
        self._vectors = {name: VectorSource(embedder, cache) for name, embedder in self._embedders.items()}
        self._cache = cache
        self._searches: dict[tuple[str, Split, str], dict[IndexSearch, None]] = {}
        for cell in resolved.cells.cells:
            if cell.embedder:
                searches = self._searches.setdefault((cell.data, cell.split, cell.embedder), {})
                searches[search_of(cell)] = None
        self._questions: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for name, data_set in resolved.experiment.data.items() if together else ():
            for question in data_set.questions:
                self._questions.setdefault((name, question.documents), []).append(question.text)
        self._indexes: LruCache[Index] = LruCache(_MAX_INDEXES, forget=Index.close)
        self._given: LruCache[ContextInputs] = LruCache(_MAX_CHUNKS, lambda given: 1 + len(given.chunks))
        self._contexts: LruCache[Context] = LruCache(
            _MAX_CHUNKS, lambda context: 1 + len(context.kept) + len(context.dropped)
        )

    def fetch(self, cell: Cell, question: Question, request: Retrieve | Embed | ReadSources) -> Any:
        """The contexts, vectors or texts that a method requests for a question."""
        if isinstance(request, Retrieve):
            return tuple(self.contexts(cell, question, request.questions))
        if isinstance(request, Embed):
            return self.vectors(cell, request.questions, request.texts)
        return tuple(self.whole_text(cell, name) for name in request.sources)

    def contexts(self, cell: Cell, question: Question, texts: Sequence[str]) -> list[Context]:
        """The context of each text, which is a question or a variant of it, in the documents of the question."""
        index = self.index(cell, question.documents)
        if len(texts) > 1:
            index.prepare(texts, [search_of(cell)])  # in one batch
        return [self._context(cell, index, text) for text in texts]

    def embeds(self, cell: Cell, questions: Sequence[str]) -> Sequence[str]:
        """The questions that are embedded for a search: all or, for bm25 without thresholds, none."""
        return questions if cell.search != "bm25" or cell.context_options.needs_vectors else ()

    def vectors(self, cell: Cell, questions: Sequence[str], texts: Sequence[str]) -> tuple[Any, Any]:
        """The vectors of the questions, and the vectors of the texts."""
        source = self._vectors[cell.embedder]
        return source.embed_questions(questions), source.embed_documents(texts)

    def embedded_tokens(self, cell: Cell, texts: Iterable[str]) -> int:
        """The number of tokens of the texts, by the tokenizer of the cell's embedder."""
        embedder = self._embedders.get(cell.embedder)
        return 0 if embedder is None else sum(embedder.tokenizer.count(text) for text in texts)

    def whole_text(self, cell: Cell, name: str) -> str:
        """The whole text of a document."""
        return whole_text(self._resolved.experiment.data[cell.data].documents[name])

    def index(self, cell: Cell, documents: tuple[str, ...]) -> Index:
        """The index of these documents, prepared for all questions of the data set about them."""

        def make() -> Index:
            index = self._new_index(cell, documents)
            index.prepare(*self._planned(cell, documents))
            return index

        return self._indexes.get((cell.data, documents, cell.split, cell.embedder), make)

    def warm(self, cell: Cell, documents: tuple[str, ...]) -> None:
        """Split and embed what is not yet cached for an index; thread-safe."""
        self._new_index(cell, documents).warm(*self._planned(cell, documents))

    def forget(self) -> None:
        """Forget retrievals and contexts; indexes are kept."""
        self._given.clear()
        self._contexts.clear()
        for source in self._vectors.values():
            source.forget_questions()
        for index in self._indexes.values():
            index.forget()

    def close(self) -> None:
        """Close the stores."""
        self._indexes.clear()

    def _new_index(self, cell: Cell, documents: tuple[str, ...]) -> Index:
        texts = self._resolved.experiment.data[cell.data].documents
        embedder = self._embedders[cell.embedder]
        return Index(
            {name: texts[name] for name in documents},
            self._resolved.splitting(cell, embedder),
            self._vectors[cell.embedder],
            self._cache,
            open_store=self._resolved.open_store,
            searches=self._planned(cell, documents)[1],
            store_identities=self._resolved.experiment.store_identities,
        )

    def _planned(self, cell: Cell, documents: tuple[str, ...]) -> tuple[list[str], list[IndexSearch]]:
        """All questions of the data set about these documents, and all searches for them."""
        searches = self._searches.get((cell.data, cell.split, cell.embedder), ())
        return self._questions.get((cell.data, documents), []), list(searches)

    def _context(self, cell: Cell, index: Index, question: str) -> Context:
        search = search_of(cell)
        inputs = cell.context_options.needs_vectors, cell.context_options.reads_sources
        place = index.key, cell.embedder, search, question, inputs

        def retrieve() -> ContextInputs:
            return index.given(question, search, with_vectors=inputs[0], with_neighbors=inputs[1])

        def build() -> Context:
            return assemble(self._given.get(place, retrieve), cell.options.numbered(cell.context_options))

        return self._contexts.get((place, cell.context_options, cell.options.cite), build)


def search_of(cell: Cell) -> IndexSearch:
    """The search parameters of a cell."""
    options = cell.context_options
    return IndexSearch(cell.search, cell.store, options.candidates)
