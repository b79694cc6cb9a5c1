"""A retriever around any retriever or vector store that gives its documents in the order of their source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    BaseRunManager,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import patch_config
from pydantic import ConfigDict

from oprag.context import Context, assembling
from oprag.langchain.documents import documents_of
from oprag.langchain.finding import Search
from oprag.langchain.wrapping_retriever import WrappingRetriever
from oprag.options import ContextOptions, as_context_options, everything_kept
from oprag.question import check_question, check_questions
from oprag.steps import Steps, run_async, run_sync

if TYPE_CHECKING:
    from oprag.assembly.threshold_report import ThresholdReport

__all__ = ["OrderPreservingRetriever"]


@dataclass
class _Request:
    """What LangChain does not hand on to `_get_relevant_documents`, and what it does not hand back."""

    # A wrapped retriever may be configured for each user; without that it would search what belongs to others.
    config: RunnableConfig | None
    context_options: ContextOptions | None = None
    context: Context | None = None


class OrderPreservingRetriever(WrappingRetriever):
    """Gives the documents of another retriever, or of a vector store, in the order of their source.

    It stands wherever a LangChain retriever can. Rerankers and ensembles belong inside: once documents are in order,
    their places no longer say how good they are.

    Args:
        retriever: Any retriever; what it gives is ranked by its place in the list.
        vectorstore: Any vector store, in place of `retriever`; `k` is then 128 and `token_budget` 16,384 by default,
            whichever binds first (the OP-RAG-16K of the paper).
        search_type: With `vectorstore`: "similarity", "similarity_score_threshold" or "mmr".
        search_kwargs: With `vectorstore`: handed to the store as they are, such as `filter` or `score_threshold`.
        embeddings: For the thresholds, where vectors have to be made: LangChain's `Embeddings` or an `oprag.Embedder`;
            those of the store by default.
        vector_cache: Where vectors that were made are kept; 256 MiB in memory by default.
        read_neighbors: For `neighbors`: a function of a document and a number that returns the documents around it, or
            a `DocumentIndex`; that of a wrapped `DocumentIndexRetriever` by default. Documents are used whatever the
            filter of the search; a function with a required parameter `filter` is given that filter.
        annotate: Give copies of the documents with rank, score, position and span under the metadata key "oprag".
        **options: The options of `oprag.ContextOptions`. `stitch` is off by default: the retriever's own documents
            come back, the same objects. With `stitch=True` there is one document a passage.

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

    model_config = ConfigDict(defer_build=False)

    @property
    def context_options(self) -> ContextOptions:
        """The options as `ContextOptions`, for the context: its text is stitched, whatever `stitch` says."""
        return self._context_options(stitch=True)

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
        context_options: ContextOptions | None = None,
    ) -> Context:
        """The context for a question: passages, what was dropped and why, tokens and text.

        The text is stitched, whatever `stitch` says about the documents. In traces it is a run of this retriever.

        Args:
            query: The question.
            k: In place of the retriever's own.
            filter: Handed to the vector store, or to the wrapped retriever if that takes one.
            config: Handed to the wrapped retriever.
            context_options: In place of all options of the retriever.

        Raises:
            QueryError: The question is empty or no string.
            BudgetError: Documents were found, and not one fits `token_budget`.
            OptionError: The wrapped retriever takes no filter, or `k` has a value that it cannot have.
        """
        request = _Request(config, context_options or self.context_options)
        super().invoke(query, config, request=request, k=k, filter=filter)
        return _filled_in(request)

    async def aget_context(
        self,
        query: str,
        *,
        k: int | None = None,
        filter: Any = None,
        config: RunnableConfig | None = None,
        context_options: ContextOptions | None = None,
    ) -> Context:
        """As `get_context`, async."""
        request = _Request(config, context_options or self.context_options)
        await super().ainvoke(query, config, request=request, k=k, filter=filter)
        return _filled_in(request)

    def threshold_report(
        self, questions: Sequence[str], *, k: int | None = None, config: RunnableConfig | None = None
    ) -> ThresholdReport:
        """Which cosines the chunks have that are found for these questions, and which thresholds follow from that.

        Args:
            questions: Questions as users ask them; some tens of them say enough.
            k: In place of the retriever's own.
            config: Handed to the wrapped retriever.

        Returns:
            The report, a table when it is printed.

        Raises:
            QueryError: A question is empty or no string, or none of them finds anything.
            EmbeddingError: There is nothing that makes vectors.
        """
        from oprag.assembly.threshold_report import report_thresholds

        context_options = everything_kept(self.context_options)
        contexts = [
            self.get_context(one, k=k, config=config, context_options=context_options)
            for one in check_questions(questions)
        ]
        return report_thresholds(contexts, self._vector_sources(None).name)

    async def athreshold_report(
        self, questions: Sequence[str], *, k: int | None = None, config: RunnableConfig | None = None
    ) -> ThresholdReport:
        """As `threshold_report`, async."""
        from oprag.assembly.threshold_report import report_thresholds

        context_options = everything_kept(self.context_options)
        contexts = [
            await self.aget_context(one, k=k, config=config, context_options=context_options)
            for one in check_questions(questions)
        ]
        return report_thresholds(contexts, self._vector_sources(None).name)

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
        return self._documents(run_sync(self._found(query, k, filter, request, run_manager)), request, run_manager)

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
        context = await run_async(self._found(query, k, filter, request, run_manager))
        return self._documents(context, request, run_manager)

    def _found(self, query: str, k: int | None, filter: Any, request: _Request, run: Any) -> Steps[Context]:
        """What is done for a question, sync or async."""
        check_question(query)
        context_options = as_context_options(
            request.context_options or self._context_options(), {} if k is None else {"k": k}
        )
        search = Search(
            self.retriever,
            self.vectorstore,
            self.search_type,
            self.search_kwargs,
            filter,
            patch_config(request.config, callbacks=run.get_child()),
        )
        sources = self._vector_sources(filter) if context_options.needs_vectors else None
        given = yield from search.found(
            query, context_options, sources, self._neighbors(filter) if context_options.neighbors else None
        )
        return (yield from assembling(given, context_options))

    def _documents(self, context: Context, request: _Request, run: BaseRunManager) -> list[Document]:
        request.context = context
        if request.context_options is not None and not run.handlers:
            # Who asked for the context gets no documents, and nobody traces them.
            return []
        return documents_of(context, annotate=self.annotate)


def _filled_in(request: _Request) -> Context:
    assert request.context is not None  # noqa: S101 - set by a search that has not raised
    return request.context
