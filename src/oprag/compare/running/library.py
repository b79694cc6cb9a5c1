"""The contexts, vectors and whole texts of an experiment; what several cells need is made once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from oprag.compare.data.data_set import DataSet, Question, whole_text
from oprag.compare.db.cache import WorkCache
from oprag.compare.providers.embedder import ExperimentEmbedder
from oprag.compare.running.index import Index, Search, Splitting, StoreOpener
from oprag.compare.running.recent import Recent
from oprag.compare.running.vectors import VectorSource
from oprag.compare.spec.grid import Cell
from oprag.context import Context, ContextInputs, assemble
from oprag.errors import SourceReadError
from oprag.index.splitting import Split
from oprag.options import ContextOptions

__all__ = ["Library", "search_of"]

_INDEXES = 16
# Chunks in all contexts that are at hand: about half a kilobyte each. A context of k=128 has as many, one that is cut
# by its tokens alone all chunks of its documents.
_CHUNKS = 100_000


class Library:
    """What methods read, by cell and question.

    Args:
        data: The data sets by their names.
        embedders: The embedders by their names.
        cells: The cells, of whose searches an index is told beforehand.
        cache: Where work is kept that is done once.
        open_store: Opens an empty store by its name, for an embedder.
        together: Whether all questions about the same documents are searched for at once, when the first one is.
        store_identities: What stores are whose names do not say it.
    """

    def __init__(
        self,
        data: Mapping[str, DataSet],
        embedders: Mapping[str, ExperimentEmbedder],
        cells: Iterable[Cell],
        cache: WorkCache,
        open_store: Callable[[str, ExperimentEmbedder], Any],
        *,
        together: bool = True,
        store_identities: Mapping[str, str] | None = None,
    ) -> None:
        self._data = data
        self._embedders = embedders
        self._vectors = {name: VectorSource(embedder, cache) for name, embedder in embedders.items()}
        self._cache = cache
        self._open_store = open_store
        self._store_identities = store_identities or {}
        self._searches: dict[tuple[str, Split, str], dict[Search, None]] = {}
        for cell in cells:
            if cell.embedder:
                searches = self._searches.setdefault((cell.data, cell.split, cell.embedder), {})
                searches[search_of(cell)] = None
        self._questions: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for name, data_set in data.items() if together else ():
            for question in data_set.questions:
                self._questions.setdefault((name, question.documents), []).append(question.text)
        self._indexes: Recent[Index] = Recent(_INDEXES, forget=Index.close)
        self._given: Recent[ContextInputs] = Recent(_CHUNKS, lambda given: 1 + len(given.chunks))
        self._contexts: Recent[Context] = Recent(_CHUNKS, lambda context: 1 + len(context.kept) + len(context.dropped))

    def contexts(self, cell: Cell, question: Question, asked: Sequence[str]) -> list[Context]:
        """The context of each question that a method asks about the documents of a question of the set."""
        index = self.index(cell, question.documents)
        if len(asked) > 1:
            # Embedded in one batch, and searched for at once.
            index.prepare(asked, [search_of(cell)])
        return [self._context(cell, index, one) for one in asked]

    def embeds(self, cell: Cell, questions: Sequence[str]) -> Sequence[str]:
        """Which of these questions are embedded to be searched for."""
        return questions if cell.search != "bm25" or cell.context_options.needs_vectors else ()

    def vectors(self, cell: Cell, questions: Sequence[str], texts: Sequence[str]) -> tuple[Any, Any]:
        """A vector for each question and for each text."""
        source = self._vectors[cell.embedder]
        return source.embed_questions(questions), source.embed_documents(texts)

    def embedded_tokens(self, cell: Cell, texts: Iterable[str]) -> int:
        """The tokens of texts in the unit of the cell's embedder."""
        embedder = self._embedders.get(cell.embedder)
        return 0 if embedder is None else sum(embedder.count_tokens(text) for text in texts)

    def whole_text(self, cell: Cell, name: str) -> str:
        """The whole text of a document.

        Raises:
            SourceReadError: There is no such document.
        """
        documents = self._data[cell.data].documents
        if name not in documents:
            raise SourceReadError(f"the data set {cell.data!r} has no document {name!r}", name)
        return whole_text(documents[name])

    def index(self, cell: Cell, documents: tuple[str, ...]) -> Index:
        """The index of these documents, with all that the set's questions about them will ask for."""
        key = cell.data, documents, cell.split, cell.embedder

        def make() -> Index:
            texts = self._data[cell.data].documents
            embedder = self._embedders[cell.embedder]
            searches = list(self._searches.get((cell.data, cell.split, cell.embedder), ()))
            open_store: StoreOpener = lambda name: self._open_store(name, embedder)  # noqa: E731
            index = Index(
                {name: texts[name] for name in documents},
                Splitting(cell.split, embedder.tokenizer, embedder.named_tokenizer.identity),
                self._vectors[cell.embedder],
                self._cache,
                open_store=open_store,
                searches=searches,
                store_identities=self._store_identities,
            )
            index.prepare(self._questions.get((cell.data, documents), []), searches)
            return index

        return self._indexes.get(key, make)

    def forget(self) -> None:
        """Forget what was found and made of it; indexes stay."""
        self._given.clear()
        self._contexts.clear()
        for index in self._indexes.values():
            index.forget()

    def close(self) -> None:
        """Give back what stores hold."""
        self._indexes.clear()

    def _context(self, cell: Cell, index: Index, question: str) -> Context:
        search = search_of(cell)
        wants = cell.context_options.needs_vectors, cell.context_options.neighbors > 0
        place = index.key, cell.embedder, search, question, wants

        def retrieve() -> ContextInputs:
            return index.given(question, search, with_vectors=wants[0], with_neighbors=wants[1])

        def put_together() -> Context:
            return assemble(self._given.get(place, retrieve), cell.options.numbered(cell.context_options))

        return self._contexts.get((place, cell.context_options, cell.options.cite), put_together)


def search_of(cell: Cell) -> Search:
    """How a cell searches."""
    return Search(cell.search, cell.store, _depth(cell.context_options))


def _depth(context_options: ContextOptions) -> int | None:
    return context_options.max_candidates or context_options.k
