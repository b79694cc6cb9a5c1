"""Middleware for agents: what they find in several searches becomes one context, in the order of the sources."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, NotRequired

from oprag.errors import MissingExtraError, RetrievalWarning
from oprag.langchain.search_results import (
    STATE_KEY,
    as_tool_names,
    gather_search_results,
    lay_out_messages,
    working_context_of,
)
from oprag.options import ContextOptions
from oprag.warn import warn
from oprag.working_context import Layout, WorkingContext, check_layout

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
except ImportError as error:
    raise MissingExtraError("OrderPreservingMiddleware", "langchain") from error

__all__ = ["OrderPreservingMiddleware", "WorkingContextState"]


class WorkingContextState(AgentState[Any]):
    """The state of an agent with a working context.

    Attributes:
        working_context: What was gathered, as plain values; `working_context_of` reads it.
    """

    working_context: NotRequired[dict[str, Any]]


class OrderPreservingMiddleware(AgentMiddleware[WorkingContextState, Any, Any]):
    """Gathers what the search tools of an agent find: once, numbered, in the order of the sources.

    It works with every tool that returns a list of documents as its artifact
    (`response_format="content_and_artifact"`), such as that of `create_search_tool`. The text of such a result is
    replaced by the texts of its documents, with their sources and pages; what else the tool wrote is dropped. All other
    messages are left alone. What was gathered is kept in the agent's state, so that checkpoints, threads, interrupts
    and time travel work, and agents share nothing.

    Results are gathered before the model is called. Results of tools with `return_direct` stay unchanged until the next
    call of the model, because the user reads them.

    Put it last in the list of middleware: the others then decide which messages the model sees before pointers are
    written, and a result that they redacted stays redacted.

    Args:
        options: The options of the working context, such as `token_budget`, for everything that the agent gathers.
        layout: "delta": each search shows only what is new; earlier messages stay as they are, so the provider's
            prompt cache keeps working. "compact": before each call of the model, the last search result becomes the
            whole context, in source order, and earlier results become pointers.
        compact_above: With "compact": the number of tokens of all results up to which they are left as "delta".
        search_tools: The names of the tools whose results are gathered, whatever their text is, redacted or not; by
            default all tools.
        **changes: Options of `ContextOptions` to change, such as `token_budget=16_000`.

    Raises:
        MissingExtraError: The package `langchain` is not installed; raised when this class is imported.
        OptionError: An option is unknown, invalid, without effect, or one of a search, such as `k`.

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
        # Checked as the working context will.
        self._options = WorkingContext(options, **changes).options
        self._layout = layout
        self._compact_above = compact_above
        self._search_tools = as_tool_names(search_tools)

    def before_model(self, state: WorkingContextState, runtime: Any) -> dict[str, Any] | None:  # noqa: ARG002
        """Gather the results of the searches that the model asked for, in the sequence of its calls."""
        return gather_search_results(state, self._options, search_tools=self._search_tools) or None

    async def abefore_model(self, state: WorkingContextState, runtime: Any) -> dict[str, Any] | None:
        """As `before_model`."""
        return self.before_model(state, runtime)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Call the model with the search results as the layout has them."""
        return handler(self._laid_out(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """As `wrap_model_call`."""
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
        """Warn about a search tool that is missing, or returns text without documents."""
        names = {str(getattr(tool, "name", "")) for tool in tools}
        for name in (self._search_tools or frozenset()) - names:
            warn(
                f"search_tools names {name!r}, and the agent has no such tool; it has {', '.join(sorted(names))}",
                RetrievalWarning,
                cause=f"the search tool {name!r} is missing",
            )
        for tool in tools:
            # Tools of the provider are dictionaries.
            if getattr(tool, "response_format", None) != "content":
                continue
            made_by = getattr(getattr(tool, "func", None), "__qualname__", "")
            if made_by.startswith("create_retriever_tool.") or tool.name in (self._search_tools or ()):
                warn(
                    f"the results of the tool {tool.name!r} are not gathered, since it returns text alone; make it "
                    'with response_format="content_and_artifact", or with oprag.langchain.create_search_tool',
                    RetrievalWarning,
                    cause="a retriever tool without documents",
                )
