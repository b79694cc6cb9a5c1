"""Tools for agents: a search that gathers what it finds in their run, and tools that read more of a source."""

# Without `from __future__ import annotations`, because LlamaIndex finds the `Context` parameter by its class.

import threading
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, TypeVar

from llama_index.core import VectorStoreIndex
from llama_index.core.async_utils import asyncio_run
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices.base import BaseIndex
from llama_index.core.tools import FunctionTool, ToolOutput
from llama_index.core.workflow import Context as WorkflowContext
from pydantic import BaseModel, ValidationError

from oprag._internal.sync_async import Step, Steps, run_async, run_sync
from oprag.adapters.fields import OPTIONS
from oprag.agents.numbered_text import NOTHING
from oprag.agents.reading import Reading, StoredSources
from oprag.agents.search_result_blocks import Form
from oprag.agents.tools import (
    DEFAULT_K,
    READING_TOOLS,
    SEARCH,
    ReadingTool,
    check_tool_name,
    gathering_options,
    refusal,
    schema_of,
    search_description,
    warn_if_unreadable,
)
from oprag.agents.working_context import Delta, WorkingContext
from oprag.context import Context
from oprag.errors import OptionError
from oprag.llama_index.cited_messages import blocks_of
from oprag.llama_index.nodes import annotated
from oprag.llama_index.retriever import OrderPreservingRetriever
from oprag.llama_index.search_results import gather_search_results, working_context_of
from oprag.llama_index.vectors import chunk_of_stored
from oprag.options import NO_SEARCH, ContextOptions, refuse_options

__all__ = ["SearchTool", "blocks", "create_reading_tools", "create_search_tool", "sources_of", "tool_retriever"]

T = TypeVar("T", bound=FunctionTool)

# Options that both the retriever and the working context need.
_SHARED = ("on_missing_position", "on_uncertain", "source_key", "position_key")


class SearchTool(FunctionTool):
    """The tool of `create_search_tool`.

    Attributes:
        options: The options of the working context.
        working_context: The working context of all calls outside a workflow.
    """

    options: ContextOptions
    working_context: WorkingContext


def create_search_tool(
    retriever: BaseRetriever | BaseIndex[Any],
    *,
    name: str = SEARCH.name,
    description: str | None = None,
    content: Form = "text",
    **options: Any,
) -> SearchTool:
    """Create a search tool for an agent that shows each passage once, numbered, in source order.

    For `FunctionAgent`, `ReActAgent` and `AgentWorkflow`. Each result shows what is new in it, and refers to text that
    the model already sees with pointers. The working context is stored in the store of the workflow's `Context`, as
    plain values: it belongs to one conversation, is continued by later runs with the same context (even after
    `Context.from_dict`), and all agents and search tools of the conversation share its numbers.

    A pointer refers only to text that the model sees: text of messages that a memory dropped, or of another agent's
    messages that are not in the prompt, is shown again with the same number. To determine this, the tool reads
    "scratchpad", "current_reasoning" and "memory" in the store. With another `scratchpad_key`, text is shown again in
    each result; in a workflow without any of these keys, all text counts as seen. A tool cannot change messages of
    earlier runs: if a memory drops a message later, older pointers to it stay in the memory.
    `OrderPreservingFunctionAgent` repairs these, and also offers the layout "compact".

    Without a workflow, as in `tool.call(query="...")` or a loop of your own, the tool gathers all calls in its own
    working context, `tool.working_context`; create a tool for each conversation, or pass `ctx=`.

    Args:
        retriever: Any retriever or index, or an `OrderPreservingRetriever`.
        name: The name of the tool.
        description: The description of the tool for the model; by default one for the form of its results.
        content: The form of a result: "text", or "search_result" for a `CitableBlock` for each passage, by which Claude
            cites (`llama-index-llms-anthropic`, with a `FunctionAgent`; other models reject them).
        **options: Options of `OrderPreservingRetriever`. For an index, `k` is 16 by default; a retriever has its own
            limit. `token_budget`, `count_tokens`, `header`, `stitch` and options for the order are those of the working
            context: the budget limits all text that is shown in a conversation.

    Returns:
        The tool. The `raw_output` of its results is the list of nodes in source order, each with its number, rank and
        position under the metadata key "oprag", which is neither embedded nor shown to the model.

    Raises:
        OptionError: `retriever` is an `OrderPreservingRetriever` and search options are given, or `name` or `content`
            is invalid.
        ValidationError: An option is unknown or invalid, or `retriever` is neither a retriever nor an index (pydantic's
            error, which is a ValueError).

    Example:
        >>> from llama_index.core.agent.workflow import FunctionAgent
        >>> agent = FunctionAgent(llm=llm, tools=[create_search_tool(index)])  # doctest: +SKIP
        >>> ctx = Context(agent)  # doctest: +SKIP
        >>> answer = await agent.run("Who is the captain?", ctx=ctx)  # doctest: +SKIP
        >>> (await working_context_of(ctx)).cited(str(answer))  # doctest: +SKIP
    """
    description = search_description(name, description, content)
    searched, gathering = _searched_with(retriever, options)
    searched = searched._for_many_searches()  # noqa: SLF001

    own, lock = WorkingContext(gathering), threading.Lock()

    def gather(found: Context) -> Delta:
        with lock:
            return own.add(found, content=content)

    def search(query: str, *, ctx: WorkflowContext | None) -> Steps[ToolOutput]:
        found = yield Step(
            partial(searched.get_context, query), None if blocks(searched) else partial(searched.aget_context, query)
        )
        delta = None
        if found.kept and ctx is None:
            delta = yield Step(partial(gather, found))
        elif found.kept:
            gathered = partial(gather_search_results, ctx, found, gathering, f"{name}: {query}", content=content)
            delta = yield _awaiting(gathered)
        return ToolOutput(
            tool_name=name,
            blocks=blocks_of(delta.content if delta else NOTHING),
            raw_input={"args": (), "kwargs": {"query": query}},
            raw_output=[annotated(chunk, number=delta.ranks.get(chunk.rank)) for chunk in found.kept] if delta else [],
        )

    tool = _tool_of(SearchTool, search, name, description, schema_of(SEARCH))
    tool.options, tool.working_context = gathering, own
    return tool


def _tool_of(
    kind: type[T], steps: Callable[..., Steps[ToolOutput]], name: str, description: str, schema: type[BaseModel]
) -> T:
    """Create a tool from a body that takes the arguments, and `ctx`: the workflow's context, or None outside one."""

    def run(*args: Any, ctx: WorkflowContext = None, **given: Any) -> ToolOutput:  # type: ignore[assignment]
        return run_sync(steps(*args, ctx=ctx, **given))

    async def arun(*args: Any, ctx: WorkflowContext = None, **given: Any) -> ToolOutput:  # type: ignore[assignment]
        return await run_async(steps(*args, ctx=ctx, **given))

    tool = kind.from_defaults(
        fn=run,
        async_fn=arun,
        name=name,
        description=description,
        fn_schema=schema,
        callback=_itself,
        async_callback=_itself_async,
        # LlamaIndex rejects a call without a context, even if the function has a default.
        partial_params={"ctx": None},
    )
    assert isinstance(tool, kind)  # noqa: S101 - from_defaults returns an instance of its class
    return tool


def _awaiting(call: Callable[[], Coroutine[Any, Any, Any]]) -> Step:
    """A step that LlamaIndex offers only async."""
    return Step(lambda: asyncio_run(call()), call)


def _searched_with(retriever: Any, options: Mapping[str, Any]) -> tuple[OrderPreservingRetriever, ContextOptions]:
    """The retriever of an agent's tool, and the options of the working context."""
    of_retriever = {name: options[name] for name in options if not _is_of_context(name)}
    if "header" in options and not isinstance(retriever, OrderPreservingRetriever):
        # The retriever reads the headings for `{section}`.
        of_retriever["header"] = options["header"]
    searched = tool_retriever(retriever, of_retriever)
    base = gathering_options(searched.context_options)
    gathering = WorkingContext(base, **{name: options[name] for name in options if _is_of_context(name)})
    return searched, gathering.options


def blocks(searched: OrderPreservingRetriever) -> bool:
    """Whether an async search blocks the event loop, as the default `_aretrieve` does, which calls the sync method."""
    return type(searched.retriever)._aretrieve is BaseRetriever._aretrieve  # noqa: SLF001


def _is_of_context(name: str) -> bool:
    """Whether an option belongs only to the working context."""
    return name in OPTIONS and name not in NO_SEARCH and name not in _SHARED


def tool_retriever(retriever: Any, options: dict[str, Any]) -> OrderPreservingRetriever:
    """The retriever of an agent's tool."""
    if isinstance(retriever, OrderPreservingRetriever):
        refuse_options(retriever, options)
        return retriever
    if isinstance(retriever, BaseIndex):
        if not isinstance(retriever, VectorStoreIndex):
            return OrderPreservingRetriever(retriever=retriever.as_retriever(), **options)
        options = {"k": DEFAULT_K, **options}
        limits = {name: options[name] for name in ("k", "max_candidates", "continuity") if name in options}
        checked = ContextOptions(**limits)
        candidates = checked.candidates or DEFAULT_K
        if candidates == checked.k:
            # `similarity_top_k` already applies this limit.
            options.pop("k")
        return OrderPreservingRetriever(retriever=retriever.as_retriever(similarity_top_k=candidates), **options)
    return OrderPreservingRetriever(retriever=retriever, **options)


def _itself(output: ToolOutput) -> ToolOutput:
    """Return the function's output, so that LlamaIndex does not convert it."""
    return output


async def _itself_async(output: ToolOutput) -> ToolOutput:
    return output


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
    searched, gathering = _searched_with(retriever, options)
    sources = sources_of(searched, token_budget, gathering)
    warn_if_unreadable(sources)

    return [_reading_tool(tool, f"{prefix}{tool.name}", sources, gathering) for tool in READING_TOOLS]


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


def _reading_tool(tool: ReadingTool, name: str, sources: StoredSources, gathering: ContextOptions) -> FunctionTool:
    """Create a tool that validates its arguments and adds the chunks that it reads to the working context."""
    schema = schema_of(tool)

    def read(*args: Any, ctx: WorkflowContext | None, **given: Any) -> Steps[ToolOutput]:
        if len(args) > len(tool.arguments):
            raise OptionError(f"{name} takes {', '.join(tool.arguments)}, got {len(args)} arguments", args)
        given = dict(zip(tool.arguments, args, strict=False)) | given
        arguments = _checked(schema, given)
        working = (yield _awaiting(partial(working_context_of, ctx))) if tool.numbered and ctx is not None else None
        reading: Reading = yield Step(partial(tool.read, sources, working, **arguments))
        text, numbers = reading.text, dict[int, int]()
        if reading.chunks and ctx is not None:
            delta: Delta = yield _awaiting(
                partial(gather_search_results, ctx, reading.chunks, gathering, f"{name}: {given}", note=reading.note)
            )
            text, numbers = delta.text, dict(delta.ranks)
        nodes = [annotated(chunk, number=numbers.get(chunk.rank)) for chunk in reading.chunks]
        return ToolOutput(tool_name=name, content=text, raw_input={"args": (), "kwargs": given}, raw_output=nodes)

    return _tool_of(FunctionTool, read, name, tool.description, schema)


def _checked(schema: type[BaseModel], given: Mapping[str, Any]) -> dict[str, Any]:
    """Validate the arguments from the model, which LlamaIndex does not validate."""
    try:
        return dict(schema.model_validate(given))
    except ValidationError as error:
        said = refusal(error)
    raise OptionError(said, None)
