"""One search for one question, with whatever is wrapped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.retrievers import RetrieverLike
from langchain_core.runnables import RunnableConfig
from langchain_core.vectorstores import VectorStore

from oprag.assembly.neighbors import NeighborReader
from oprag.context import ContextInputs
from oprag.errors import OptionError
from oprag.langchain.documents import found_chunks
from oprag.langchain.search import SearchType, asearch, search
from oprag.langchain.wrapped import takes_filter
from oprag.options import ContextOptions
from oprag.steps import Step, Steps

if TYPE_CHECKING:
    from oprag.chunk import Vector
    from oprag.embedding.vectors import VectorSources

__all__ = ["Search"]


@dataclass(frozen=True)
class Search:
    """What is searched, and how.

    Attributes:
        retriever: The wrapped retriever, or
        vectorstore: the vector store.
        search_type: With a store: how it is searched.
        search_kwargs: With a store: what it is handed.
        filter: The filter of this question.
        config: Handed to the wrapped retriever.
    """

    retriever: RetrieverLike | None
    vectorstore: VectorStore | None
    search_type: SearchType
    search_kwargs: Mapping[str, Any]
    filter: Any
    config: RunnableConfig

    def found(
        self,
        query: str,
        context_options: ContextOptions,
        sources: VectorSources | None,
        read_neighbors: NeighborReader | None,
    ) -> Steps[ContextInputs]:
        """What a context is made of: chunks, and where there are sources of vectors, theirs and that of the question.

        Raises:
            OptionError: The wrapped retriever takes no filter.
            ChunkError: It gives something else than documents.
            EmbeddingError: A vector cannot be had or cannot be used.
        """
        store, vector = self.vectorstore, None
        # Vectors of another embedder than the store's own would find nothing in it.
        own = sources if sources is not None and sources.store is not None and sources.embedder is not None else None
        if store is not None and own is not None and self._takes_a_vector(store):
            from oprag.embedding.vectors import question_vector

            vector = yield from question_vector(query, own)
            found = yield self._search_by(vector, store, context_options)
        else:
            found = yield self._search(query, context_options)
        given = ContextInputs(found_chunks(found, context_options, wraps=store is None), vector, read_neighbors)
        if sources is None:
            return given
        # NumPy is loaded only for who wants thresholds.
        from oprag.embedding.vectors import given_with_vectors

        return (yield from given_with_vectors(given, query, context_options, sources))

    def _search(self, query: str, context_options: ContextOptions) -> Step:
        if self.vectorstore is not None:
            store, kwargs = self.vectorstore, self._store_kwargs(context_options)
            return Step(
                lambda: search(store, query, self.search_type, kwargs),
                lambda: asearch(store, query, self.search_type, kwargs),
            )
        inner = self.retriever
        assert inner is not None  # noqa: S101 - held by the retriever
        keywords = self._filter_kwargs()

        def run() -> Any:
            return inner.invoke(query, self.config, **keywords), None

        async def arun() -> Any:
            return await inner.ainvoke(query, self.config, **keywords), None

        return Step(run, arun)

    def _takes_a_vector(self, store: VectorStore) -> bool:
        from oprag.langchain.vector_search import takes_a_vector

        return takes_a_vector(store, self.search_type, self.search_kwargs)

    def _search_by(self, vector: Vector, store: VectorStore, context_options: ContextOptions) -> Step:
        from oprag.langchain.vector_search import asearch_by_vector, search_by_vector

        kwargs = self._store_kwargs(context_options)
        return Step(
            lambda: search_by_vector(store, vector, self.search_type, kwargs),
            lambda: asearch_by_vector(store, vector, self.search_type, kwargs),
        )

    def _store_kwargs(self, context_options: ContextOptions) -> dict[str, Any]:
        if "k" in self.search_kwargs:
            raise OptionError("k is given twice, as k and inside search_kwargs", self.search_kwargs)
        wanted = context_options.max_candidates or context_options.k
        return {**self.search_kwargs, "k": wanted, **({} if self.filter is None else {"filter": self.filter})}

    def _filter_kwargs(self) -> dict[str, Any]:
        """The filter as a keyword; refused where the retriever would drop it and mix what must stay apart."""
        if self.filter is None:
            return {}
        if not takes_filter(self.retriever):
            raise OptionError(
                f"the wrapped {type(self.retriever).__name__} takes no filter; give it to its own search", self.filter
            )
        return {"filter": self.filter}
