"""Tools with which an agent reads more of a source, in order."""

# Without `from __future__ import annotations`, because LlamaIndex finds the `Context` parameter by its class.

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices.base import BaseIndex
from llama_index.core.tools import FunctionTool, ToolOutput
from llama_index.core.workflow import Context as WorkflowContext
from pydantic import BaseModel, ValidationError

from oprag.errors import OptionError
from oprag.llama_index.neighbors import chunk_of_stored
from oprag.llama_index.search_results import gather_search_results, working_context_of
from oprag.llama_index.search_tool import awaiting, numbered, searched_with, tool_of
from oprag.options import ContextOptions
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
from oprag.steps import Step, Steps

__all__ = ["create_reading_tools"]


def create_reading_tools(
    retriever: BaseRetriever | BaseIndex[Any],
    *,
    token_budget: int = 4_000,
    prefix: str = "",
    **options: Any,
) -> list[FunctionTool]:
    """Create tools with which an agent reads a source in order: around a passage, a range of chunks, and an outline.

    `read_around(number, before, after)` reads the nodes around a passage, given its number in the working context of
    `create_search_tool`. `read_range(source, start, end)` and `outline(source)` can be used without a search. Nodes
    that the tools read are added to the working context, and text that the agent has already seen is not repeated. They
    count toward the token budget that the last search applied to the whole conversation.

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
        The tools `read_around`, `read_range` and `outline`. The `raw_output` of the first two is the list of nodes, as
        for the search tool.

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
    sources = StoredSources(
        searched._store_of_neighbors,  # noqa: SLF001
        gathering,
        chunk_of_stored,
        token_budget=token_budget,
        store_order=searched.store_order,
        passes=searched._passes,  # noqa: SLF001
        texts=searched._source_texts,  # noqa: SLF001
    )
    warn_if_unreadable(sources)

    def around(ctx: WorkflowContext | None, asked: AroundInput) -> Steps[Any]:
        if ctx is None:
            raise OptionError(
                "the number of a passage is read from the context of a workflow; pass ctx=Context(agent) to the search "
                "tool and to this one, or read a range of chunks, which needs no number",
                asked.number,
            )
        working = yield awaiting(partial(working_context_of, ctx))
        if not len(working):
            raise OptionError("no passages are numbered yet: search first", asked.number)
        return (yield Step(partial(sources.around, working.chunk(asked.number), asked.before, asked.after)))

    def range_of(_: WorkflowContext | None, asked: RangeInput) -> Steps[Any]:
        return (yield Step(partial(sources.range, asked.source, asked.start, asked.end)))

    def outline(_: WorkflowContext | None, asked: OutlineInput) -> Steps[Any]:
        return (yield Step(partial(sources.outline, asked.source)))

    return [
        _tool(f"{prefix}{name}", description, schema, ask, gathering)
        for name, description, schema, ask in (
            ("read_around", AROUND, AroundInput, around),
            ("read_range", RANGE, RangeInput, range_of),
            ("outline", OUTLINE, OutlineInput, outline),
        )
    ]


def _tool(
    name: str,
    description: str,
    schema: type[BaseModel],
    ask: Callable[[WorkflowContext | None, Any], Steps[Any]],
    gathering: ContextOptions,
) -> FunctionTool:
    """Create a tool that validates its arguments and adds the chunks that it reads to the working context."""

    def read(*args: Any, ctx: WorkflowContext | None, **given: Any) -> Steps[ToolOutput]:
        if len(args) > len(schema.model_fields):
            raise OptionError(f"{name} takes {', '.join(schema.model_fields)}, got {len(args)} arguments", args)
        given = dict(zip(schema.model_fields, args, strict=False)) | given
        answer: Reading | str = yield from ask(ctx, _checked(schema, given))
        result = partial(ToolOutput, tool_name=name, raw_input={"args": (), "kwargs": given})
        if isinstance(answer, str):
            return result(content=answer, raw_output=answer)
        if ctx is None:
            return result(content=answer.text, raw_output=[numbered(chunk, None) for chunk in answer.chunks])
        delta = yield awaiting(
            partial(gather_search_results, ctx, answer.chunks, gathering, f"{name}: {given}", answer.note)
        )
        nodes = [numbered(chunk, delta.ranks.get(chunk.rank)) for chunk in answer.chunks]
        return result(content=delta.text, raw_output=nodes)

    return tool_of(FunctionTool, read, name, description, schema)


def _checked(schema: type[BaseModel], given: Mapping[str, Any]) -> BaseModel:
    """Validate the arguments from the model, which LlamaIndex does not validate."""
    try:
        return schema.model_validate(given)
    except ValidationError as error:
        said = refusal(error)
    raise OptionError(said, None)
