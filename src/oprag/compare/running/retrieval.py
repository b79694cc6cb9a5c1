"""The contexts, vectors and whole texts of an experiment; shared ones are computed once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from oprag.compare.data.data_set import Question, whole_text
from oprag.compare.db.cache import WorkCache
from oprag.compare.running.index import Index, IndexSearch, VectorSource
from oprag.compare.running.prepared import PreparedExperiment
from oprag.compare.spec.grid import Cell
from oprag.context import Context, ContextInputs, assemble
from oprag.methods.effects import Embed, ReadSources, Retrieve

__all__ = ["Retrieval", "search_of"]

_WARMUP_QUESTION = "anything"
_MAX_INDEXES = 16
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
        self._cache = cache
        self._vectors = {
            name: VectorSource(embedder, cache, keep_questions=not measures)
            for name, embedder in prepared.embedders.items()
        }
        self._embedded: set[tuple[str, str]] = set()  # data sets whose questions an embedder has embedded
        self._indexes: dict[Hashable, Index] = {}  # the most recently used last
        self._inputs: dict[Hashable, ContextInputs] = {}
        self._contexts: dict[Hashable, Context] = {}
        self._chunks = 0  # of both

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
        return [self._context(cell, index, text) for text in texts]

    def embeds(self, cell: Cell, questions: Sequence[str]) -> Sequence[str]:
        """The questions that are embedded for a search: all or, for bm25 without thresholds, none."""
        return questions if cell.search != "bm25" or cell.context_options.needs_vectors else ()

    def embedded_tokens(self, cell: Cell, texts: Iterable[str]) -> int:
        """The number of tokens of the texts, by the tokenizer of the cell's embedder."""
        embedder = self._embedders.get(cell.embedder)
        return 0 if embedder is None else sum(embedder.tokenizer.count(text) for text in texts)

    def whole_text(self, cell: Cell, name: str) -> str:
        """The whole text of a document."""
        return whole_text(self._experiment.data[cell.data].documents[name])

    def index(self, cell: Cell, documents: tuple[str, ...]) -> Index:
        """The index of these documents."""
        place = cell.data, documents, cell.split, cell.embedder
        index = self._indexes.pop(place, None)
        if index is None:
            texts = self._experiment.data[cell.data].documents
            tokenizer, vectors = self._embedders[cell.embedder].tokenizer, self._vectors[cell.embedder]
            contents = {name: texts[name] for name in documents}
            index = Index(contents, cell.split, tokenizer, vectors, self._cache, stores=self._experiment.stores)
        self._indexes[place] = index
        while len(self._indexes) > _MAX_INDEXES:
            self._indexes.pop(next(iter(self._indexes))).close()
        return index

    def make_ready(self, cell: Cell, question: Question) -> None:
        """Do what does not belong to an answer: build the index, load the embedder, forget earlier searches."""
        if cell.embedder:
            index = self.index(cell, question.documents)
            index.given(_WARMUP_QUESTION, search_of(cell), with_vectors=bool(self.embeds(cell, [question.text])))
        self._forget()
        for source in self._vectors.values():
            source.forget_questions()
        for index in self._indexes.values():
            index.forget_questions()

    def close(self) -> None:
        """Close the stores."""
        for index in self._indexes.values():
            index.close()
        self._indexes.clear()

    def _context(self, cell: Cell, index: Index, question: str) -> Context:
        search, options = search_of(cell), cell.context_options
        place = index.key, cell.embedder, search, question, options.needs_vectors
        context = self._contexts.get((place, options, cell.options.cite))
        if context is None:
            inputs = self._inputs.get(place)
            if inputs is None:
                inputs = index.given(question, search, with_vectors=options.needs_vectors)
            context = assemble(inputs, cell.options.numbered(options))
            # Questions follow each other, so contexts of earlier ones are rarely needed again.
            if self._chunks > _MAX_CHUNKS:
                self._forget()
            self._chunks += len(inputs.chunks) + len(context.kept) + len(context.dropped)
            self._inputs[place] = inputs
            self._contexts[place, options, cell.options.cite] = context
        return context

    def _forget(self) -> None:
        self._inputs.clear()
        self._contexts.clear()
        self._chunks = 0


def search_of(cell: Cell) -> IndexSearch:
    """The search parameters of a cell."""
    options = cell.context_options
    return IndexSearch(cell.search, cell.store, options.candidates)
