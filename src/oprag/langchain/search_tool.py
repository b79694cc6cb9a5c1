"""A search tool for agents that returns results in the order of their source."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.documents import Document
from langchain_core.retrievers import RetrieverLike
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import patch_config
from langchain_core.tools import StructuredTool, ToolException
from langchain_core.vectorstores import VectorStore

from oprag.agents.search_result_blocks import Form, plain_blocks
from oprag.agents.tools import (
    DEFAULT_K,
    NOTHING,
    SEARCH,
    schema_of,
    search_description,
)
from oprag.context import Context
from oprag.errors import BudgetError, QueryError
from oprag.langchain.retriever import OrderPreservingRetriever
from oprag.langchain.search_results import SearchArtifact
from oprag.options import refuse_options

__all__ = ["blocks", "create_search_tool", "tool_retriever"]

# The agent can continue after these errors, so the model reads them; errors of the developer or the store are raised.
_SHOWN_TO_MODEL = (BudgetError, QueryError)


def create_search_tool(
    retriever: RetrieverLike | VectorStore | None = None,
    *,
    name: str = SEARCH.name,
    description: str | None = None,
    content: Form = "text",
    **options: Any,
) -> StructuredTool:
    """Create a search tool for an agent that returns documents in the order of their source.

    With `OrderPreservingMiddleware`, each result shows only what is new; without it, each result is complete.

    Args:
        retriever: Any retriever or vector store, or an `OrderPreservingRetriever`; for a store, `vectorstore=` as well.
        name: The name of the tool.
        description: The description of the tool for the model; by default one for the form of its results.
        content: The form of a result: "text", or "search_result" for `search_result` content blocks, one for each
            passage, by which Claude cites (API, Bedrock and Vertex AI; other models reject them).
        **options: Options of `OrderPreservingRetriever`. For a vector store, `k` is 16 by default.

    Returns:
        The tool. Its artifact is the list of documents, with their ranks under the metadata key "oprag".

    Raises:
        OptionError: `retriever` is an `OrderPreservingRetriever` and options are given, or `name` or `content` is
            invalid.
        ValidationError: An option is unknown or invalid, or `retriever` is neither a retriever nor a vector store
            (pydantic's error, which is a ValueError).

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from langchain_core.vectorstores import InMemoryVectorStore
        >>> store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
        >>> places = [{"source": "book", "start_index": start} for start in (0, 90, 200)]
        >>> _ = store.add_texts(["It begins.", "It goes on.", "It ends."], places)
        >>> print(create_search_tool(store).invoke({"query": "anything"}))
        It begins.
        <BLANKLINE>
        It goes on.
        <BLANKLINE>
        It ends.
    """
    description = search_description(name, description, content)
    searched = tool_retriever(retriever, options)._for_many_searches()  # noqa: SLF001

    # Retrievers may be configured by the config of the run; the callbacks make them child runs of the tool.
    def search(
        query: str, config: RunnableConfig, callbacks: BaseCallbackManager | None = None
    ) -> tuple[Any, list[Document]]:
        try:
            return _result(searched.get_context(query, config=patch_config(config, callbacks=callbacks)), content)
        except _SHOWN_TO_MODEL as error:
            raise ToolException(str(error)) from error

    async def asearch(
        query: str, config: RunnableConfig, callbacks: BaseCallbackManager | None = None
    ) -> tuple[Any, list[Document]]:
        try:
            found = await searched.aget_context(query, config=patch_config(config, callbacks=callbacks))
            return _result(found, content)
        except _SHOWN_TO_MODEL as error:
            raise ToolException(str(error)) from error

    return StructuredTool.from_function(
        search,
        asearch,
        name=name,
        description=description,
        args_schema=schema_of(SEARCH),
        response_format="content_and_artifact",
        handle_tool_error=True,
    )


def tool_retriever(retriever: Any, options: dict[str, Any]) -> OrderPreservingRetriever:
    """The retriever of an agent's tool."""
    if isinstance(retriever, OrderPreservingRetriever):
        refuse_options(retriever, options)
        return retriever
    kwargs = options.get("search_kwargs")
    if not isinstance(retriever, Runnable) and not (isinstance(kwargs, dict) and "k" in kwargs):
        options = {"k": DEFAULT_K, **options}
    return OrderPreservingRetriever(retriever=retriever, **options)


def blocks(searched: OrderPreservingRetriever) -> bool:  # noqa: ARG001 - LangChain runs sync code in threads
    """Whether an async search blocks the event loop."""
    return False


def _result(context: Context, form: Form) -> tuple[Any, list[Document]]:
    content = plain_blocks(context.passages) if form == "search_result" else context.text
    return content or NOTHING, SearchArtifact(context.kept)
