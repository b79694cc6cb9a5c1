"""Agent middleware that merges the results of several searches into one context, in the order of the sources."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any, NotRequired

from oprag.agents.working_context import Layout, WorkingContext, check_layout
from oprag.errors import MissingExtraError, RetrievalWarning
from oprag.langchain.search_results import (
    STATE_KEY,
    as_tool_names,
    gather_search_results,
    lay_out_messages,
    working_context_of,
)
from oprag.options import ContextOptions, check_names
from oprag.warn import warn

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
except ImportError as error:
    raise MissingExtraError("OrderPreservingMiddleware", "langchain") from error

__all__ = ["OrderPreservingMiddleware", "WorkingContextState"]


class WorkingContextState(AgentState[Any]):
    """The state of an agent with a working context.

    Attributes:
        working_context: The gathered chunks and searches, as plain values; `working_context_of` reads it.
    """

    working_context: NotRequired[dict[str, Any]]


class OrderPreservingMiddleware(AgentMiddleware[WorkingContextState, Any, Any]):
    """Gathers the results of an agent's search tools: deduplicated, numbered, in the order of the sources.

    It works with every tool that returns a list of documents as its artifact
    (`response_format="content_and_artifact"`), such as the tool from `create_search_tool`. The text of each result is
    replaced with the texts of its documents, with their sources and pages; any other text of the tool is dropped. Other
    messages are not changed. The working context is stored in the agent's state, so checkpoints, threads, interrupts
    and time travel work, and agents do not share it.

    Results are gathered before each call of the model. Results of tools with `return_direct` stay unchanged until the
    next call of the model, because the user reads them.

    Put it last in the list of middleware: the others then decide which messages the model sees before pointers are
    written, and results that they redacted stay redacted.

    Args:
        options: The options of the working context, such as `token_budget`, which apply to all gathered results.
        layout: "delta": each search shows only what is new; earlier messages stay as they are, so the provider's
            prompt cache keeps working. "compact": before each call of the model, the last search result becomes the
            whole context, in source order, and earlier results become pointers.
        compact_above: With "compact": results stay as in "delta" until they have more than this number of tokens in
            total.
        search_tools: Names of the tools whose results are gathered, even if their text was changed, such as redacted;
            by default all tools whose text contains their documents.
        **changes: Options of `ContextOptions` to change, such as `token_budget=16_000`.

    Raises:
        MissingExtraError: The package `langchain` is not installed; raised when this class is imported.
        OptionError: An option is unknown, invalid, without effect, or belongs to the search, such as `k`.

    Example:
        >>> from langchain.agents import create_agent
        >>> agent = create_agent(model, [create_search_tool(store)],
        ...                      middleware=[OrderPreservingMiddleware()])  # doctest: +SKIP
        >>> result = agent.invoke({"messages": "Who is the captain?"})  # doctest: +SKIP
        >>> working_context_of(result).cited(result["messages"][-1].text)  # doctest: +SKIP
    """

    state_schema = WorkingContextState

    def __init__(
        self,
        options: ContextOptions | None = None,
        *,
        layout: Layout = "delta",
        compact_above: int = 0,
        search_tools: Iterable[str] | None = None,
        **changes: Any,
    ) -> None:
        super().__init__()
        check_layout(layout, compact_above)
        ours = ("layout", "compact_above", "search_tools")
        check_names(changes, [*(field.name for field in fields(ContextOptions)), *ours])
        # Validates the options as the working context will.
        self._options = WorkingContext(options, **changes).options
        self._layout = layout
        self._compact_above = compact_above
        self._search_tools = as_tool_names(search_tools)

    def before_model(self, state: WorkingContextState, runtime: Any) -> dict[str, Any] | None:  # noqa: ARG002
        """Gather the new search results, in the order of the tool calls."""
        return gather_search_results(state, self._options, search_tools=self._search_tools) or None

    async def abefore_model(self, state: WorkingContextState, runtime: Any) -> dict[str, Any] | None:
        """Async version of `before_model`."""
        return self.before_model(state, runtime)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Call the model with the search results arranged by the layout."""
        return handler(self._laid_out(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Async version of `wrap_model_call`."""
        return await handler(self._laid_out(request))

    def _laid_out(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        self._warn_about_tools(request.tools)
        state: Any = request.state
        if state.get(STATE_KEY) is None:
            return request
        working = working_context_of(state, self._options)
        messages = lay_out_messages(request.messages, working, layout=self._layout, compact_above=self._compact_above)
        return request.override(messages=messages)

    def _warn_about_tools(self, tools: Sequence[Any]) -> None:
        """Warn about search tools that are missing."""
        names = {str(getattr(tool, "name", "")) for tool in tools}
        for name in (self._search_tools or frozenset()) - names:
            warn(
                f"search_tools contains {name!r}, but the agent's tools are {', '.join(sorted(names)) or 'none'}",
                RetrievalWarning,
                cause=f"the search tool {name!r} is missing",
            )
