"""Tools with which an agent reads more of a source, in order."""

# Without `from __future__ import annotations`, because LangChain finds the `ToolRuntime` parameter by its class.

from functools import partial
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import RetrieverLike
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langchain_core.vectorstores import VectorStore

from oprag.agents.reading import StoredSources
from oprag.agents.tools import READING_TOOLS, ReadingTool, check_tool_name, refusal, schema_of, warn_if_unreadable
from oprag.errors import MissingExtraError, OpragError
from oprag.langchain.retriever import OrderPreservingRetriever, filter_of
from oprag.langchain.search_results import SearchArtifact, working_context_of
from oprag.langchain.search_tool import tool_retriever
from oprag.langchain.vectors import chunk_of_stored

try:
    from langchain.tools import ToolRuntime
except ImportError as error:
    raise MissingExtraError("create_reading_tools", "langchain") from error

__all__ = ["create_reading_tools", "sources_of"]


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
    return [_tool(tool, f"{prefix}{tool.name}", sources) for tool in READING_TOOLS]


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


def _tool(tool: ReadingTool, name: str, sources: StoredSources) -> BaseTool:
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
