"""A retriever that wraps any retriever or vector store and returns documents in the order of their source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, RetrieverLike
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import patch_config
from langchain_core.vectorstores import VectorStore
from pydantic import Field, SkipValidation, model_validator

from oprag._internal.masking import listed
from oprag._internal.sync_async import Step, Steps, run_async, run_sync
from oprag.adapters.fields import PUBLIC_CONFIG, ContextFields, StoreOrderFields
from oprag.adapters.name_hints import LANGCHAIN
from oprag.chunk import by_rank
from oprag.context import Context, ContextInputs, assemble_in_steps
from oprag.errors import OptionError
from oprag.langchain.documents import chunks_of, documents_and_scores, documents_of
from oprag.langchain.search import SearchType, search, search_by_vector
from oprag.langchain.vectors import (
    EmbeddingsFields,
    check_sources,
    neighbor_reader,
    store_reader,
    vector_sources,
)
from oprag.langchain.wrapped import Search, only_search, searched_in, takes, unbound, walk
from oprag.options import OP_RAG_16K, ContextOptions, as_context_options, check_question
from oprag.pipeline.neighbors import NeighborReader
from oprag.pipeline.select import warn_about_few
from oprag.stores.adapter import StoreAdapter, adapter_of, has_own_adapter, restrictions_of
from oprag.stores.listing import searched_store

if TYPE_CHECKING:
    from oprag.stores.vectors import VectorSources

__all__ = [
    "OrderPreservingRetriever",
    "SearchFields",
    "filter_of",
]


class SearchFields(ContextFields):
    """What is searched, as pydantic fields: a retriever, or a vector store under either name."""

    retriever: SkipValidation[RetrieverLike | VectorStore | None] = Field(
        default=None,
        description="Any LangChain retriever; the rank of a document is its index in the list. Or any vector store.",
    )
    vectorstore: VectorStore | None = Field(
        default=None,
        description="Any vector store, instead of retriever; without k, the limits are k=128 and token_budget=16,384.",
    )
    search_type: SearchType = Field(
        default="similarity",
        description="Type of search in a vector store: similarity, similarity_score_threshold or mmr.",
    )
    search_kwargs: dict[str, Any] = Field(
        default_factory=dict,
        description="Arguments for the search of a vector store, such as filter or score_threshold.",
        repr=False,  # may contain API keys
    )

    # Set as field values, so that they are preserved when configurable fields recreate the object.
    @model_validator(mode="before")
    @classmethod
    def _fill_in_store_defaults(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        if values.get("vectorstore") is None and not isinstance(values.get("retriever"), VectorStore):
            return values
        values = dict(values)
        search_kwargs = values.get("search_kwargs")
        if isinstance(search_kwargs, dict) and "k" in search_kwargs:
            if "k" in values:
                raise OptionError(
                    "k is given twice, as k and inside search_kwargs; remove it from search_kwargs", search_kwargs
                )
            values["search_kwargs"] = {name: value for name, value in search_kwargs.items() if name != "k"}
            values["k"] = search_kwargs["k"]
        # A k from the user or a subclass is the only limit.
        own = {name: value for name in OP_RAG_16K if (value := cls.model_fields[name].default) is not None} | values
        return own if own.get("k") is not None else OP_RAG_16K | own

    @model_validator(mode="after")
    def _check_searched(self) -> Self:
        if (self.retriever is None) == (self.vectorstore is None):
            got = "neither" if self.retriever is None else "both"
            raise OptionError(f"pass exactly one of retriever= and vectorstore=, got {got}", None)
        if not isinstance(self.retriever, Runnable | VectorStore | None):
            name = type(self.retriever).__name__
            hint = "; pass DocumentIndexRetriever(index=...)" if name == "DocumentIndex" else ""
            raise OptionError(
                f"retriever must be a LangChain retriever or vector store, got {name}{hint}",
                self.retriever,
            )
        if isinstance(self.retriever, Runnable):
            if self.search_kwargs or self.search_type != "similarity":
                raise OptionError(
                    "search_type and search_kwargs require a vector store, got "
                    f"retriever={type(self.retriever).__name__}; set them on the retriever that you pass, or pass "
                    "vectorstore=...",
                    self.search_kwargs,
                )
        elif self.k is None and self.max_candidates is None:
            raise OptionError(
                "k=None with a vector store requires max_candidates; pass max_candidates=..., the number of documents "
                "to retrieve",
                None,
            )
        if self.continuity and self.search_type == "mmr":
            raise OptionError(
                'search_type="mmr" leaves out chunks that are similar, such as neighbors in a source, which continuity '
                "prefers; use one of the two",
                self.search_type,
            )
        if self.search_type == "similarity_score_threshold" and "score_threshold" not in self.search_kwargs:
            raise OptionError(
                'search_type="similarity_score_threshold" requires a score threshold; pass '
                'search_kwargs={"score_threshold": ...}',
                self.search_kwargs,
            )
        return self


@dataclass
class _SearchRequest:
    """Values that LangChain does not pass to `_get_relevant_documents`, and the context, which it does not return."""

    # A wrapped retriever may be configured per user; without the config it could search the documents of others.
    config: RunnableConfig | None
    context_options: ContextOptions | None = None
    context: Context | None = None


class OrderPreservingRetriever(EmbeddingsFields, StoreOrderFields, SearchFields, BaseRetriever):
    """Returns the documents of another retriever, or of a vector store, in the order of their source.

    Use it wherever a LangChain retriever is expected. Put rerankers and ensembles inside: once documents are in source
    order, their index in the list is no longer their rank.

    Args:
        retriever: Any LangChain retriever; the rank of a document is its index in the list. Or any vector store.
        vectorstore: Any vector store, instead of `retriever`. Without `k`, up to 128 chunks or 16,384 tokens are
            returned, whichever limit is reached first (OP-RAG-16K of the paper); with `k`, the number of tokens is not
            limited unless you set `token_budget`.
        search_type: With a vector store: "similarity", "similarity_score_threshold" or "mmr".
        search_kwargs: With a vector store: arguments for its search, such as `filter` or `score_threshold`.
        embeddings: For thresholds, if vectors must be computed: LangChain's `Embeddings` or an `oprag.Embedder`; by
            default those of the store.
        vector_cache: Cache of computed vectors; 256 MiB in memory by default.
        read_neighbors: For `neighbors`: a function that takes a document and a number and returns the documents around
            it, or a `DocumentIndex`. By default, neighbors are read from the searched store or index, with the filter
            of the search, if its chunks can be listed. The filter is not applied to the results of a function; a
            function with a required parameter `filter` receives it, or is not called if it cannot be determined.
        read_source: Where to read the full text of a source: a folder of text, Markdown and PDF files, a mapping of
            source names to texts, or a function that takes the name. Chunks without a position in their metadata are
            searched in the text of their source, which is read once. Only retrieved sources are read.
        store_order: Whether the insertion order of the store is used for sources whose order is unknown otherwise.
        annotate: Return copies of the documents with rank, score, position and span under the metadata key "oprag".
        **options: The options of `oprag.ContextOptions`. `stitch` is off by default: the original objects of the
            wrapped retriever are returned. With `stitch=True`, one document per passage is returned.

    Raises:
        ValidationError: An option is unknown or invalid (pydantic's error, which is a ValueError).

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from langchain_core.vectorstores import InMemoryVectorStore
        >>> store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
        >>> _ = store.add_texts(list("abcd"), [{"source": "abc", "chunk_index": i} for i in range(4)])
        >>> retriever = OrderPreservingRetriever(vectorstore=store)
        >>> [document.page_content for document in retriever.invoke("anything")]
        ['a', 'b', 'c', 'd']
    """

    model_config = PUBLIC_CONFIG

    _name_hints: ClassVar = LANGCHAIN

    @model_validator(mode="after")
    def _check_wrapped(self) -> Self:
        if isinstance(self.retriever, VectorStore):
            vars(self).update(retriever=None, vectorstore=self.retriever)
            self.model_fields_set.add("vectorstore")
        if (name := _reordered_by(self.retriever)) is not None:
            raise OptionError(
                f"the wrapped retriever already puts documents in another order ({name}), so their index is no longer "
                "their rank; the order must come last and only once: wrap the retriever without it, and set its "
                "options here",
                self.retriever,
            )
        options = self._context_options
        check_sources(options, self._vector_sources, partial(self._neighbors, options))
        return self

    @property
    def context_options(self) -> ContextOptions:
        """The options as `ContextOptions`, for contexts; always with `stitch=True`."""
        return self._stitching_options

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """Retrieve the documents for a question, in the order of their source.

        Args:
            input: The question.
            config: Passed to the wrapped retriever, including its configurable fields.
            **kwargs: `k` and `filter`, as in `get_context`.

        Raises:
            QueryError: The question is empty or not a string.
            BudgetError: None of the retrieved documents fits `token_budget`.
            OptionError: The wrapped retriever does not accept a filter, `k` is invalid, or a keyword is unknown.
        """
        return super().invoke(input, config, request=_SearchRequest(config), **kwargs)

    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """Async version of `invoke`."""
        return await super().ainvoke(input, config, request=_SearchRequest(config), **kwargs)

    def get_context(
        self,
        query: str,
        *,
        k: int | None = None,
        filter: Any = None,
        config: RunnableConfig | None = None,
        context_options: ContextOptions | None = None,
    ) -> Context:
        """Retrieve the context for a question: passages, dropped chunks with reasons, token count and text.

        The text is always stitched, regardless of `stitch`. Traces show a run of this retriever.

        Args:
            query: The question.
            k: Overrides `k` of the retriever.
            filter: Passed to the vector store, or to the wrapped retriever, which must accept a filter.
            config: Passed to the wrapped retriever.
            context_options: Overrides all options of the retriever.

        Raises:
            QueryError: The question is empty or not a string.
            BudgetError: None of the retrieved documents fits `token_budget`.
            OptionError: The wrapped retriever does not accept a filter, or `k` is invalid.
        """
        request = _SearchRequest(config, context_options or self.context_options)
        super().invoke(query, config, request=request, k=k, filter=filter)
        return request.context  # type: ignore[return-value]

    async def aget_context(
        self,
        query: str,
        *,
        k: int | None = None,
        filter: Any = None,
        config: RunnableConfig | None = None,
        context_options: ContextOptions | None = None,
    ) -> Context:
        """Async version of `get_context`."""
        request = _SearchRequest(config, context_options or self.context_options)
        await super().ainvoke(query, config, request=request, k=k, filter=filter)
        return request.context  # type: ignore[return-value]

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: Any = None,
        request: _SearchRequest | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        _refuse(kwargs)
        return run_sync(self._documents(query, k, filter, request or _SearchRequest(None), run_manager))

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: Any = None,
        request: _SearchRequest | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        _refuse(kwargs)
        return await run_async(self._documents(query, k, filter, request or _SearchRequest(None), run_manager))

    def _documents(
        self, query: str, k: int | None, filter: Any, request: _SearchRequest, run: Any
    ) -> Steps[list[Document]]:
        """Retrieve the documents for a question, and store the context in the request."""
        options = as_context_options(request.context_options or self._context_options, {} if k is None else {"k": k})
        config = patch_config(request.config, callbacks=run.get_child())
        request.context = yield from self._found(query, options, config, filter)
        return documents_of(request.context, annotate=self.annotate)

    def _found(self, query: str, options: ContextOptions, config: RunnableConfig, filter: Any = None) -> Steps[Context]:
        """Search, and build the context of what was found, without a run of this retriever in traces."""
        check_question(query)
        sources = self._vector_sources(filter) if options.needs_vectors else None
        neighbors = self._neighbors(options, filter) if options.reads_sources else None
        vector = None
        if self.vectorstore is None:
            found = yield self._wrapped_search(query, filter, config, options)
        else:
            found, vector = yield from self._store_search(query, filter, options, sources)
        searched = self.retriever if self.vectorstore is None else self.vectorstore
        chunks = chunks_of(*documents_and_scores(searched, found))
        described = lambda: searched_store(self._searched(filter), "check_positions(store)")  # noqa: E731
        inputs = ContextInputs(by_rank(chunks, found), vector, neighbors, store=described, place_each=self._place_each)
        if self.vectorstore is None and options.k is not None:
            # A wrapped retriever has its own limit.
            warn_about_few(inputs.chunks, options.k)
        if sources is not None:
            from oprag.stores.vectors import given_with_vectors

            inputs = yield from given_with_vectors(inputs, query, options, sources)
        if (self.read_source is not None or self.store_order) and inputs.undecided(options):
            ordering = self._searched(filter) if self.store_order else ()
            get_filter = partial(filter_of, self, filter)
            inputs = yield from self._orders.complete(inputs, options, ordering, self._source_texts, get_filter)
        return (yield from assemble_in_steps(inputs, options))

    def _wrapped_search(self, query: str, filter: Any, config: RunnableConfig, options: ContextOptions) -> Step:
        assert isinstance(self.retriever, Runnable)  # noqa: S101 - checked at construction
        keywords: dict[str, Any] = {} if filter is None else {"filter": filter}
        if keywords and not takes(self.retriever, "filter"):
            # The filter would be ignored, and documents returned that it should exclude.
            raise OptionError(
                f"the wrapped {type(self.retriever).__name__} does not accept a filter; set the filter on it instead",
                filter,
            )
        limit = getattr(self.retriever, "k", None)
        if options.continuity and options.candidates and limit is not None and takes(self.retriever, "k"):
            keywords["k"] = max(limit, options.candidates)
        run = partial(self.retriever.invoke, query, config, **keywords)
        # The async method that LangChain derives from a sync one takes no keywords, so the sync one runs in a thread.
        if not all(takes(self.retriever, name, is_async=True) for name in keywords):
            return Step(run)
        return Step(run, partial(self.retriever.ainvoke, query, config, **keywords))

    def _store_search(
        self, query: str, filter: Any, options: ContextOptions, sources: VectorSources | None
    ) -> Steps[tuple[Any, Any]]:
        """What the store returns, and the vector of the question if it was needed."""
        assert self.vectorstore is not None  # noqa: S101 - checked by the caller
        if "k" in self.search_kwargs:
            raise OptionError(
                "k is given twice, as k and inside search_kwargs; remove it from search_kwargs", self.search_kwargs
            )
        kwargs = {**_filtered(self.search_kwargs, filter), "k": options.candidates}
        # Without an adapter, the store has another embedder, whose vectors would not match, or is unknown.
        adapter = None if sources is None else sources.store
        by_vector = self.search_type == "similarity" and adapter is not None and adapter.dense and adapter.by_vector
        if adapter is None or sources is None or sources.embedder is None or not by_vector:
            return (yield from search(self.vectorstore, query, self.search_type, kwargs)), None
        from oprag.stores.vectors import question_vector

        vector = yield from question_vector(query, sources)
        return (yield search_by_vector(self.vectorstore, vector, adapter, kwargs)), vector

    def _searches(self, filter: Any) -> list[Search]:
        """All that is searched, for this filter; empty if that is unknown."""
        given = self.vectorstore
        searches = searched_in(self.retriever) if given is None else [(given, self.search_kwargs)]
        return [(store, _filtered(search, filter)) for store, search in searches]

    def _only_search(self) -> Search | None:
        """The search if all that it finds is returned, else None."""
        return only_search(self.retriever) if self.vectorstore is None else (self.vectorstore, self.search_kwargs)

    def _vector_sources(self, filter: Any = None) -> VectorSources:
        """The sources of vectors for a search with this filter."""
        searches = self._searches(filter)
        return vector_sources(self, *(searches[0] if len(searches) == 1 else ()))

    def _searched(self, filter: Any) -> list[StoreAdapter]:
        """The adapters of all searched stores, for this filter."""
        return [adapter for search in self._searches(filter) if (adapter := adapter_of(*search)) is not None]

    def _neighbors(self, options: ContextOptions, filter: Any = None) -> NeighborReader | None:
        """The reader of neighbors for a search with this filter; None if not available."""
        if self.read_neighbors is not None:
            return neighbor_reader(self.read_neighbors, lambda: filter_of(self, filter))
        store = self._store_of_neighbors(filter)
        return None if store is None else store_reader(store, options, store_order=self.store_order)

    def _store_of_neighbors(self, filter: Any) -> StoreAdapter | None:
        """The adapter of the searched store if the filter can be applied to neighbors, else None."""
        search = self._only_search()
        return None if search is None else adapter_of(search[0], _filtered(search[1], filter))


def filter_of(retriever: OrderPreservingRetriever, filter: Any) -> Any:
    """The filter of a search, for functions that require it: that of this question, else that of the construction."""
    if (search := retriever._only_search()) is not None:  # noqa: SLF001
        return _known_filter(*search, filter)
    # Another retriever may ignore the filter among its keywords, and use the other ones.
    inner, keywords = unbound(retriever.retriever)
    given = {**(getattr(inner, "search_kwargs", None) or {}), **keywords}
    return _known_filter(inner, {name: value for name, value in given.items() if name != "filter"}, filter)


def _known_filter(searched: Any, search: Mapping[str, Any], filter: Any = None) -> Any:
    """The filter of a search in a store or retriever; None only if it is certain that nothing restricts the search."""
    adapter = adapter_of(searched, search)
    others = (restrictions_of(search) if adapter is None else adapter.restrictions) - {"filter"}
    given = search.get("filter") if filter is None else filter
    if others:
        problem = f"{listed(sorted(others))} may restrict the search, too"
    # Any other store or retriever may have a filter of its own.
    elif given is None and not has_own_adapter(searched):
        problem = f"no filter was given, and a {type(searched).__name__} may have one of its own"
    else:
        return given
    raise OptionError(
        f"read_neighbors or read_source requires the filter of the search, which cannot be determined: {problem}; "
        "wrap the vector store or its as_retriever(), and restrict the search by filter alone, or pass a function "
        "without a required parameter filter",
        searched,
    )


def _filtered(search: Mapping[str, Any], filter: Any) -> dict[str, Any]:
    """The keyword arguments of a search with the filter for one question, if any, in place of its own."""
    return {**search, **({} if filter is None else {"filter": filter})}


def _refuse(kwargs: Mapping[str, Any]) -> None:
    if kwargs:
        raise OptionError(
            f"unknown arguments: {listed(kwargs)}; only k and filter can be set for a single question; set options, "
            "and search_kwargs for the search of a vector store, at construction",
            kwargs,
        )


def _reordered_by(component: Any) -> str | None:
    """The name of the component inside that puts documents in another order than by rank, if any."""
    for one in walk(component):
        if type(one).__name__ == "LongContextReorder" or (isinstance(one, ContextFields) and one.order != "rank"):
            return type(one).__name__
    return None
