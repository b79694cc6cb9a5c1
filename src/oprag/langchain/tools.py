"""Tools for agents: a search whose results are in the order of their source, and those that read more of a source."""

# Without `from __future__ import annotations`, because LangChain finds the `ToolRuntime` parameter by its class.

from functools import partial
from typing import Any

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.documents import Document
from langchain_core.retrievers import RetrieverLike
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import patch_config
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langchain_core.vectorstores import VectorStore

from oprag.agents.numbered_text import NOTHING
from oprag.agents.reading import StoredSources
from oprag.agents.search_result_blocks import Form, plain_blocks
from oprag.agents.tools import (
    DEFAULT_K,
    READING_TOOLS,
    SEARCH,
    ReadingTool,
    check_tool_name,
    refusal,
    schema_of,
    search_description,
    warn_if_unreadable,
)
from oprag.context import Context
from oprag.errors import BudgetError, MissingExtraError, OpragError, QueryError
from oprag.langchain.retriever import OrderPreservingRetriever, filter_of
from oprag.langchain.search_results import SearchArtifact, working_context_of
from oprag.langchain.vectors import chunk_of_stored
from oprag.options import refuse_options

__all__ = ["blocks", "create_reading_tools", "create_search_tool", "sources_of", "tool_retriever"]

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


def create_reading_tools(
    retriever: RetrieverLike | VectorStore | None = None,
    *,
    token_budget: int = 4_000,
    prefix: str = "",
    **options: Any,
) -> list[BaseTool]:
    """Create tools with which an agent reads in order: around a passage, a range, an outline, and what has exact words.

    `read_around(number, before, after)` reads the chunks around a passage, given its number in the working context, so
    the agent needs `OrderPreservingMiddleware` (or a graph with `gather_search_results`). `read_range(source, start,
    end)`, `outline(source)` and `grep(pattern, source, regex, ignore_case, limit)` do not need it. Chunks that the
    tools read are added to the working context, and text that the agent has already seen is not repeated.

    The tools read only chunks of the searched store that pass the filter of the search. If the store cannot list its
    chunks, or their order is unknown, the tools return an error to the model; if the order is uncertain, the result
    says so. Pass the same retriever as to `create_search_tool`.

    Args:
        retriever: Any retriever or vector store, or an `OrderPreservingRetriever`; for a store, `vectorstore=` as well.
        token_budget: Maximum number of tokens in one result, counted with `count_tokens`.
        prefix: Prefix of the tool names, for an agent with several stores, such as "manual_".
        **options: Options of `OrderPreservingRetriever`, such as `read_source`, `search_kwargs` or `count_tokens`.

    Returns:
        The tools `read_around`, `read_range`, `outline` and `grep`. Their artifact is the list of documents.

    Raises:
        OptionError: `retriever` is an `OrderPreservingRetriever` and options are given, or `token_budget` or `prefix`
            is invalid.
        ValidationError: An option is unknown or invalid, or `retriever` is neither a retriever nor a vector store
            (pydantic's error, which is a ValueError).

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from langchain_core.vectorstores import InMemoryVectorStore
        >>> store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
        >>> _ = store.add_texts(["One.", "Two.", "Three."], [{"source": "book", "chunk_index": i} for i in range(3)])
        >>> around, read, outline, grep = create_reading_tools(store)
        >>> print(read.invoke({"source": "book", "start": 2, "end": 3}))
        Two.
        <BLANKLINE>
        Three.
        <BLANKLINE>
        (Chunks 2 to 3 of 3 of book)
    """
    check_tool_name("prefix", prefix, minimum=0)
    sources = sources_of(tool_retriever(retriever, options), token_budget)
    warn_if_unreadable(sources)
    return [_reading_tool(tool, f"{prefix}{tool.name}", sources) for tool in READING_TOOLS]


def sources_of(searched: OrderPreservingRetriever, token_budget: int) -> StoredSources:
    """The sources that a retriever can find."""
    return StoredSources(
        partial(searched._store_of_neighbors, None),  # noqa: SLF001
        searched.context_options,
        chunk_of_stored,
        token_budget=token_budget,
        store_order=searched.store_order,
        texts=searched._source_texts,  # noqa: SLF001
        filter=partial(filter_of, searched, None),
    )


def _reading_tool(tool: ReadingTool, name: str, sources: StoredSources) -> BaseTool:
    try:
        from langchain.tools import ToolRuntime
    except ImportError as error:
        raise MissingExtraError("create_reading_tools", "langchain") from error

    def read(
        runtime: ToolRuntime[Any, Any] = None,  # type: ignore[assignment]
        **arguments: Any,
    ) -> tuple[str, list[Document]]:
        state = getattr(runtime, "state", None) if tool.numbered else None
        try:
            reading = tool.read(sources, None if state is None else working_context_of(state), **arguments)
        except OpragError as error:
            # The model reads it.
            raise ToolException(str(error)) from error
        return reading.text, SearchArtifact(reading.chunks, reading.note)

    return StructuredTool.from_function(
        read,
        name=name,
        description=tool.description,
        args_schema=schema_of(tool),
        response_format="content_and_artifact",
        handle_tool_error=True,
        handle_validation_error=refusal,
    )
