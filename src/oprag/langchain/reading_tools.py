"""Tools with which an agent reads more of a source, in order."""

# Without `from __future__ import annotations`, because LangChain finds the `ToolRuntime` parameter by its class.

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from langchain_core.documents import Document
from langchain_core.retrievers import RetrieverLike
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langchain_core.vectorstores import VectorStore

from oprag.chunk import Chunk
from oprag.errors import MissingExtraError, OpragError
from oprag.langchain.index_retriever import DocumentIndexRetriever
from oprag.langchain.retriever import OrderPreservingRetriever, filter_of
from oprag.langchain.search_results import SearchArtifact, working_context_of
from oprag.langchain.search_tool import searched_with
from oprag.langchain.vectors import chunk_of_stored
from oprag.reading import Reading, StoredSources
from oprag.reading_inputs import (
    AROUND,
    OUTLINE,
    RANGE,
    AroundInput,
    OutlineInput,
    RangeInput,
    check_tool_name,
    refusal,
    warn_if_unreadable,
)
from oprag.stores.adapter import StoreAdapter, adapter_of

try:
    from langchain.tools import ToolRuntime
except ImportError as error:
    raise MissingExtraError("create_reading_tools", "langchain") from error

__all__ = ["create_reading_tools"]

T = TypeVar("T")


def create_reading_tools(
    retriever: RetrieverLike | VectorStore | None = None,
    *,
    token_budget: int = 4_000,
    prefix: str = "",
    **options: Any,
) -> list[BaseTool]:
    """Create tools with which an agent reads a source in order: around a passage, a range of chunks, and an outline.

    `read_around(number, before, after)` reads the chunks around a passage, given its number in the working context, so
    the agent needs `OrderPreservingMiddleware` (or a graph with `gather_search_results`). `read_range(source, start,
    end)` and `outline(source)` do not need it. Chunks that the tools read are added to the working context, and text
    that the agent has already seen is not repeated.

    The tools read only chunks of the searched store that pass the filter of the search. If the store cannot list its
    chunks, or their order is unknown, the tools return an error to the model; if the order is uncertain, the result
    says so. Pass the same retriever as to `create_search_tool`.

    Args:
        retriever: Any retriever or vector store, or an `OrderPreservingRetriever`; for a store, `vectorstore=` as well.
        token_budget: Maximum number of tokens in one result, counted with `count_tokens`.
        prefix: Prefix of the tool names, for an agent with several stores, such as "manual_".
        **options: Options of `OrderPreservingRetriever`, such as `read_source`, `search_kwargs` or `count_tokens`.

    Returns:
        The tools `read_around`, `read_range` and `outline`. The artifact of the first two is the list of documents.

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
        >>> around, read, outline = create_reading_tools(store)
        >>> print(read.invoke({"source": "book", "start": 2, "end": 3}))
        Two.
        <BLANKLINE>
        Three.
        <BLANKLINE>
        (Chunks 2 to 3 of 3 of book)
    """
    check_tool_name("prefix", prefix, minimum=0)
    searched = searched_with(retriever, options)
    sources = StoredSources(
        partial(_store_of, searched),
        searched.context_options,
        chunk_of_stored,
        token_budget=token_budget,
        store_order=searched.store_order,
        texts=searched._source_texts,  # noqa: SLF001
        filter=partial(filter_of, searched, None),
    )
    warn_if_unreadable(sources)

    def read_around(
        number: int,
        before: int = 2,
        after: int = 2,
        runtime: ToolRuntime[Any, Any] = None,  # type: ignore[assignment]
    ) -> tuple[str, list[Document]]:
        chunk = _answered(partial(_chunk_in, runtime, number))
        return _result(_answered(partial(sources.around, chunk, before, after)))

    def read_range(source: str, start: int, end: int) -> tuple[str, list[Document]]:
        return _result(_answered(partial(sources.range, source, start, end)))

    def outline(source: str | None = None) -> str:
        return _answered(partial(sources.outline, source))

    return [
        StructuredTool.from_function(
            function,
            name=f"{prefix}{function.__name__}",
            description=description,
            args_schema=schema,
            response_format="content" if function is outline else "content_and_artifact",
            handle_tool_error=True,
            handle_validation_error=refusal,
        )
        for function, description, schema in (
            (read_around, AROUND, AroundInput),
            (read_range, RANGE, RangeInput),
            (outline, OUTLINE, OutlineInput),
        )
    ]


def _store_of(searched: OrderPreservingRetriever) -> StoreAdapter | None:
    """The adapter of the searched store if the filter can be applied to reading, else None."""
    # Not `isinstance`: a subclass may search differently.
    if type(searched.retriever) is DocumentIndexRetriever:
        return adapter_of(searched.retriever.index)
    return searched._store_of_neighbors(None)  # noqa: SLF001


def _chunk_in(runtime: Any, number: int) -> Chunk:
    """The passage with this number in the working context of the agent."""
    state = getattr(runtime, "state", None)
    if state is None:
        raise ToolException(
            "the number of a passage is read from the state of an agent with OrderPreservingMiddleware; outside an "
            "agent, read a range of chunks, which needs no number"
        )
    working = working_context_of(state)
    if not working:
        raise ToolException(
            "no passages are numbered yet: search first (the agent requires OrderPreservingMiddleware, which "
            "numbers them)"
        )
    return working.chunk(number)


def _answered(ask: Callable[[], T]) -> T:
    """Return the result, or raise the error as one that the model reads."""
    try:
        return ask()
    except OpragError as error:
        raise ToolException(str(error)) from error


def _result(reading: Reading) -> tuple[str, list[Document]]:
    return reading.text, SearchArtifact(reading.chunks, reading.note)
