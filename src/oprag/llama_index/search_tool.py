"""A search tool for agents that adds its results to the working context of their run."""

# Without `from __future__ import annotations`, because LlamaIndex finds the `Context` parameter by its class.

import threading
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, TypeVar

from llama_index.core import VectorStoreIndex
from llama_index.core.async_utils import asyncio_run
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import NodeWithScore
from llama_index.core.tools import FunctionTool, ToolOutput
from llama_index.core.workflow import Context as WorkflowContext
from pydantic import BaseModel

from oprag._internal.sync_async import Step, Steps, run_async, run_sync
from oprag.adapters.fields import OPTIONS
from oprag.agents.search_result_blocks import Form
from oprag.agents.tools import (
    DEFAULT_K,
    NOTHING,
    SEARCH,
    gathering_options,
    schema_of,
    search_description,
)
from oprag.agents.working_context import Delta, WorkingContext
from oprag.chunk import Chunk, chunk_to_dict
from oprag.context import Context
from oprag.llama_index.cited_messages import blocks_of
from oprag.llama_index.retriever import OrderPreservingRetriever
from oprag.llama_index.search_results import gather_search_results
from oprag.options import NO_SEARCH, ContextOptions, refuse_options
from oprag.pipeline.context_report import METADATA_KEY
from oprag.stores.llama_index_nodes import with_metadata

__all__ = [
    "SearchTool",
    "awaiting",
    "blocks",
    "create_search_tool",
    "numbered",
    "searched_with",
    "tool_of",
    "tool_retriever",
]

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
    searched, gathering = searched_with(retriever, options)
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
            delta = yield awaiting(gathered)
        return ToolOutput(
            tool_name=name,
            blocks=blocks_of(delta.content if delta else NOTHING),
            raw_input={"args": (), "kwargs": {"query": query}},
            raw_output=[numbered(chunk, delta.ranks.get(chunk.rank)) for chunk in found.kept] if delta else [],
        )

    tool = tool_of(SearchTool, search, name, description, schema_of(SEARCH))
    tool.options, tool.working_context = gathering, own
    return tool


def tool_of(
    kind: type[T], steps: Callable[..., Steps[ToolOutput]], name: str, description: str, schema: type[BaseModel]
) -> T:
    """Create a tool from a body that takes the arguments, and `ctx`: the workflow's context, or None outside one."""
    # Errors that the model reads contain this name.
    steps.__name__ = steps.__qualname__ = name

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


def awaiting(call: Callable[[], Coroutine[Any, Any, Any]]) -> Step:
    """A step that LlamaIndex offers only async."""
    return Step(lambda: asyncio_run(call()), call)


def searched_with(retriever: Any, options: Mapping[str, Any]) -> tuple[OrderPreservingRetriever, ContextOptions]:
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


def numbered(chunk: Chunk, number: int | None) -> NodeWithScore:
    """The node of a chunk with its number, rank and position in the metadata."""
    scored: NodeWithScore = chunk.origin
    annotation = {METADATA_KEY: {**chunk_to_dict(chunk), "number": number}}
    return scored.model_copy(update={"node": with_metadata(scored.node, annotation)})


def _itself(output: ToolOutput) -> ToolOutput:
    """Return the function's output, so that LlamaIndex does not convert it."""
    return output


async def _itself_async(output: ToolOutput) -> ToolOutput:
    return output
