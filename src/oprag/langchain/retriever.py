"""A retriever around any retriever or vector store that gives its documents in the order of their source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    BaseRunManager,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams, RetrieverLike
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import patch_config
from langchain_core.vectorstores import VectorStore
from pydantic import ConfigDict, Field, model_validator

from oprag.assembly import OP_RAG_16K, Assembly, as_assembly
from oprag.build import build_context
from oprag.context import Context
from oprag.errors import OptionError
from oprag.fields import AssemblyFields
from oprag.langchain.documents import documents_of, found_chunks
from oprag.langchain.search import Found, SearchType, asearch, search
from oprag.langchain.wrapped import takes_filter, unwrapped
from oprag.question import check_question

__all__ = ["OrderPreservingRetriever"]


@dataclass
class _Request:
    """What LangChain does not hand on to `_get_relevant_documents`, and what it does not hand back."""

    # A wrapped retriever may be configured for each user; without that it would search what belongs to others.
    config: RunnableConfig | None
    assembly: Assembly | None = None
    context: Context | None = None


class OrderPreservingRetriever(AssemblyFields, BaseRetriever):
    """Gives the documents of another retriever, or of a vector store, in the order of their source.

    It stands wherever a LangChain retriever can. Rerankers and ensembles belong inside: once documents are in order,
    their places no longer say how good they are.

    Args:
        retriever: Any retriever; what it gives is ranked by its place in the list.
        vectorstore: Any vector store, in place of `retriever`; `k` is then 128 and `token_budget` 16,384 by default,
            whichever binds first (the OP-RAG-16K of the paper).
        search_type: With `vectorstore`: "similarity", "similarity_score_threshold" or "mmr".
        search_kwargs: With `vectorstore`: handed to the store as they are, such as `filter` or `score_threshold`.
        annotate: Give copies of the documents with rank, score, position and span under the metadata key "oprag".
        **options: The options of `oprag.Assembly`. `stitch` is off by default: the retriever's own documents come back,
            the same objects. With `stitch=True` there is one document a passage.

    Raises:
        ValidationError: An option is unknown or has a value that it cannot have (pydantic's error, which is a
            ValueError).

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from langchain_core.vectorstores import InMemoryVectorStore
        >>> store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
        >>> _ = store.add_texts(list("abcd"), [{"source": "abc", "chunk_index": i} for i in range(4)])
        >>> retriever = OrderPreservingRetriever(vectorstore=store)
        >>> [document.page_content for document in retriever.invoke("anything")]
        ['a', 'b', 'c', 'd']
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, hide_input_in_errors=True, defer_build=True)

    retriever: RetrieverLike | None = None
    vectorstore: VectorStore | None = None
    search_type: SearchType = "similarity"
    search_kwargs: dict[str, Any] = Field(default_factory=dict, repr=False)  # may hold keys

    @model_validator(mode="before")
    @classmethod
    def _fill_in_store_defaults(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("vectorstore") is None:
            return values
        values = dict(values)
        search_kwargs = values.get("search_kwargs")
        if isinstance(search_kwargs, dict) and "k" in search_kwargs:
            if "k" in values:
                raise OptionError(
                    "k is given twice, as k and inside search_kwargs; leave it out of search_kwargs", search_kwargs
                )
            values["search_kwargs"] = {name: value for name, value in search_kwargs.items() if name != "k"}
            values["k"] = search_kwargs["k"]
        return OP_RAG_16K | values

    @model_validator(mode="after")
    def _check_what_is_wrapped(self) -> Self:
        if (self.retriever is None) == (self.vectorstore is None):
            raise OptionError("give either retriever= or vectorstore=", None)
        if any(isinstance(inner, OrderPreservingRetriever) for inner in unwrapped(self.retriever)):
            raise OptionError(
                "the wrapped retriever already is an OrderPreservingRetriever: in an ordered list the place of a "
                "document no longer says how good it is; set its own options instead",
                self.retriever,
            )
        if self.vectorstore is None:
            if self.search_kwargs or self.search_type != "similarity":
                raise OptionError(
                    "search_type and search_kwargs go with vectorstore=, not with retriever=", self.search_kwargs
                )
        elif self.k is None and self.fetch_k is None:
            raise OptionError("k=None with vectorstore= needs fetch_k, the number of documents to search for", None)
        if self.search_type == "similarity_score_threshold" and "score_threshold" not in self.search_kwargs:
            raise OptionError(
                'search_type="similarity_score_threshold" needs search_kwargs={"score_threshold": ...}',
                self.search_kwargs,
            )
        return self

    @property
    def assembly(self) -> Assembly:
        """The options as an `Assembly`, for the context: its text is stitched, whatever `stitch` says."""
        return self._assembly(stitch=True)

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """The documents for a question, in the order of their source.

        Args:
            input: The question.
            config: Handed on to the wrapped retriever, its configurable fields included.
            **kwargs: `k` and `filter`, as in `get_context`.

        Raises:
            QueryError: The question is empty or no string.
            BudgetError: Documents were found, and not one fits `token_budget`.
            OptionError: The wrapped retriever takes no filter, or `k` has a value that it cannot have.
        """
        return super().invoke(input, config, request=_Request(config), **kwargs)

    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """As `invoke`, async."""
        return await super().ainvoke(input, config, request=_Request(config), **kwargs)

    def get_context(
        self,
        query: str,
        *,
        k: int | None = None,
        filter: Any = None,
        config: RunnableConfig | None = None,
        assembly: Assembly | None = None,
    ) -> Context:
        """The context for a question: passages, what was dropped and why, tokens and text.

        The text is stitched, whatever `stitch` says about the documents. In traces it is a run of this retriever.

        Args:
            query: The question.
            k: In place of the retriever's own.
            filter: Handed to the vector store, or to the wrapped retriever if that takes one.
            config: Handed to the wrapped retriever.
            assembly: In place of all options of the retriever.

        Raises:
            QueryError: The question is empty or no string.
            BudgetError: Documents were found, and not one fits `token_budget`.
            OptionError: The wrapped retriever takes no filter, or `k` has a value that it cannot have.
        """
        request = _Request(config, assembly or self.assembly)
        super().invoke(query, config, request=request, k=k, filter=filter)
        return _filled_in(request)

    async def aget_context(
        self,
        query: str,
        *,
        k: int | None = None,
        filter: Any = None,
        config: RunnableConfig | None = None,
        assembly: Assembly | None = None,
    ) -> Context:
        """As `get_context`, async."""
        request = _Request(config, assembly or self.assembly)
        await super().ainvoke(query, config, request=request, k=k, filter=filter)
        return _filled_in(request)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: Any = None,
        request: _Request | None = None,
    ) -> list[Document]:
        request = request or _Request(None)
        assembly = self._assembly_for(query, k, request)
        found = self._fetch(query, assembly, filter, patch_config(request.config, callbacks=run_manager.get_child()))
        return self._documents(found, assembly, request, run_manager)

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: Any = None,
        request: _Request | None = None,
    ) -> list[Document]:
        request = request or _Request(None)
        assembly = self._assembly_for(query, k, request)
        config = patch_config(request.config, callbacks=run_manager.get_child())
        return self._documents(await self._afetch(query, assembly, filter, config), assembly, request, run_manager)

    def _assembly_for(self, query: str, k: int | None, request: _Request) -> Assembly:
        check_question(query)
        return as_assembly(request.assembly or self._assembly(), {} if k is None else {"k": k})

    def _documents(self, found: Found, assembly: Assembly, request: _Request, run: BaseRunManager) -> list[Document]:
        context = build_context(found_chunks(found, assembly, wraps=self.vectorstore is None), assembly)
        request.context = context
        if request.assembly is not None and not run.handlers:
            # Who asked for the context gets no documents, and nobody traces them.
            return []
        return documents_of(context, annotate=self.annotate)

    def _fetch(self, query: str, assembly: Assembly, filter: Any, config: RunnableConfig | None) -> Found:
        if self.vectorstore is not None:
            return search(self.vectorstore, query, self.search_type, self._store_kwargs(assembly, filter))
        assert self.retriever is not None  # noqa: S101 - held by the validator
        return self.retriever.invoke(query, config, **self._filter_kwargs(filter)), None

    async def _afetch(self, query: str, assembly: Assembly, filter: Any, config: RunnableConfig | None) -> Found:
        if self.vectorstore is not None:
            return await asearch(self.vectorstore, query, self.search_type, self._store_kwargs(assembly, filter))
        assert self.retriever is not None  # noqa: S101 - held by the validator
        return await self.retriever.ainvoke(query, config, **self._filter_kwargs(filter)), None

    def _store_kwargs(self, assembly: Assembly, filter: Any) -> dict[str, Any]:
        if "k" in self.search_kwargs:
            raise OptionError("k is given twice, as k and inside search_kwargs", self.search_kwargs)
        wanted = assembly.fetch_k or assembly.k
        return self.search_kwargs | {"k": wanted} | ({} if filter is None else {"filter": filter})

    def _filter_kwargs(self, filter: Any) -> dict[str, Any]:
        """The filter as a keyword; refused where the retriever would drop it and mix what must stay apart."""
        if filter is None:
            return {}
        if not takes_filter(self.retriever):
            raise OptionError(
                f"the wrapped {type(self.retriever).__name__} takes no filter; give it to its own search", filter
            )
        return {"filter": filter}

    def _get_ls_params(self, **kwargs: Any) -> LangSmithRetrieverParams:
        """What tracing shows: the store and the embedding model that are wrapped."""
        kwargs.pop("request", None)
        params = super()._get_ls_params(**kwargs)
        if self.vectorstore is not None:
            inner = self.vectorstore.as_retriever()._get_ls_params(**kwargs)  # noqa: SLF001
        elif isinstance(self.retriever, BaseRetriever):
            inner = self.retriever._get_ls_params(**kwargs)  # noqa: SLF001
        else:
            return params
        return {**inner, **params}


def _filled_in(request: _Request) -> Context:
    assert request.context is not None  # noqa: S101 - set by a search that has not raised
    return request.context
