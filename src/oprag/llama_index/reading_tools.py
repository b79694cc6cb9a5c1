"""Tools with which an agent reads more of a source, in order."""

# Without `from __future__ import annotations`, because LlamaIndex finds the `Context` parameter by its class.

from collections.abc import Mapping
from functools import partial
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices.base import BaseIndex
from llama_index.core.tools import FunctionTool, ToolOutput
from llama_index.core.workflow import Context as WorkflowContext
from pydantic import BaseModel, ValidationError

from oprag._internal.sync_async import Step, Steps
from oprag.agents.reading import Reading, StoredSources
from oprag.agents.tools import READING_TOOLS, ReadingTool, check_tool_name, refusal, schema_of, warn_if_unreadable
from oprag.agents.working_context import Delta
from oprag.errors import OptionError
from oprag.llama_index.neighbors import chunk_of_stored
from oprag.llama_index.retriever import OrderPreservingRetriever
from oprag.llama_index.search_results import gather_search_results, working_context_of
from oprag.llama_index.search_tool import awaiting, numbered, searched_with, tool_of
from oprag.options import ContextOptions

__all__ = ["create_reading_tools", "sources_of"]


def create_reading_tools(
    retriever: BaseRetriever | BaseIndex[Any],
    *,
    token_budget: int = 4_000,
    prefix: str = "",
    **options: Any,
) -> list[FunctionTool]:
    """Create tools with which an agent reads in order: around a passage, a range, an outline, and what has exact words.

    `read_around(number, before, after)` reads the nodes around a passage, given its number in the working context of
    `create_search_tool`. `read_range(source, start, end)`, `outline(source)` and `grep(pattern, source, regex,
    ignore_case, limit)` can be used without a search. Nodes that the tools read are added to the working context, and
    text that the agent has already seen is not repeated. They count toward the token budget that the last search
    applied to the whole conversation.

    The tools read only nodes of the searched store that pass the filter of the search. If the store cannot list its
    nodes, or their order is unknown, the tools return an error to the model; if the order is uncertain, the result says
    so. Pass the same index or retriever, and the same options, as to `create_search_tool`.

    Without a workflow, as in `tool.call(...)`, nothing is gathered or numbered, and `read_around` requires the `ctx=`
    that was passed to the search tool.

    Args:
        retriever: Any retriever or index, or an `OrderPreservingRetriever`. The tools can read the index of a
            `VectorIndexRetriever`, or an index passed as `read_neighbors=`.
        token_budget: Maximum number of tokens in one result, counted with `count_tokens`.
        prefix: Prefix of the tool names, for an agent with several stores, such as "manual_".
        **options: Options of `OrderPreservingRetriever`, such as `read_source`, and of the working context, such as
            `header` or `count_tokens`.

    Returns:
        The tools `read_around`, `read_range`, `outline` and `grep`. Their `raw_output` is the list of nodes, as for the
        search tool.

    Raises:
        OptionError: `retriever` is an `OrderPreservingRetriever` and search options are given, or `token_budget` or
            `prefix` is invalid.
        ValidationError: An option is unknown or invalid, or `retriever` is neither a retriever nor an index (pydantic's
            error, which is a ValueError).

    Example:
        >>> from llama_index.core.agent.workflow import FunctionAgent
        >>> tools = [create_search_tool(index), *create_reading_tools(index)]  # doctest: +SKIP
        >>> agent = FunctionAgent(llm=llm, tools=tools)  # doctest: +SKIP
    """
    check_tool_name("prefix", prefix, minimum=0)
    searched, gathering = searched_with(retriever, options)
    sources = sources_of(searched, token_budget, gathering)
    warn_if_unreadable(sources)

    return [_tool(tool, f"{prefix}{tool.name}", sources, gathering) for tool in READING_TOOLS]


def sources_of(
    searched: OrderPreservingRetriever, token_budget: int, gathering: ContextOptions | None = None
) -> StoredSources:
    """The sources that a retriever can find."""
    return StoredSources(
        searched._store_of_neighbors,  # noqa: SLF001
        gathering or searched.context_options,
        chunk_of_stored,
        token_budget=token_budget,
        store_order=searched.store_order,
        texts=searched._source_texts,  # noqa: SLF001
    )


def _tool(tool: ReadingTool, name: str, sources: StoredSources, gathering: ContextOptions) -> FunctionTool:
    """Create a tool that validates its arguments and adds the chunks that it reads to the working context."""
    schema = schema_of(tool)

    def read(*args: Any, ctx: WorkflowContext | None, **given: Any) -> Steps[ToolOutput]:
        if len(args) > len(tool.arguments):
            raise OptionError(f"{name} takes {', '.join(tool.arguments)}, got {len(args)} arguments", args)
        given = dict(zip(tool.arguments, args, strict=False)) | given
        arguments = _checked(schema, given)
        working = (yield awaiting(partial(working_context_of, ctx))) if tool.numbered and ctx is not None else None
        reading: Reading = yield Step(partial(tool.read, sources, working, **arguments))
        text, numbers = reading.text, dict[int, int]()
        if reading.chunks and ctx is not None:
            delta: Delta = yield awaiting(
                partial(gather_search_results, ctx, reading.chunks, gathering, f"{name}: {given}", note=reading.note)
            )
            text, numbers = delta.text, dict(delta.ranks)
        nodes = [numbered(chunk, numbers.get(chunk.rank)) for chunk in reading.chunks]
        return ToolOutput(tool_name=name, content=text, raw_input={"args": (), "kwargs": given}, raw_output=nodes)

    return tool_of(FunctionTool, read, name, tool.description, schema)


def _checked(schema: type[BaseModel], given: Mapping[str, Any]) -> dict[str, Any]:
    """Validate the arguments from the model, which LlamaIndex does not validate."""
    try:
        return dict(schema.model_validate(given))
    except ValidationError as error:
        said = refusal(error)
    raise OptionError(said, None)
