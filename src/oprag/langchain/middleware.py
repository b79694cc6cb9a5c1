"""Agent middleware that merges the results of several searches into one context, in the order of the sources."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Annotated, Any, NotRequired

from langchain_core.messages import AIMessage

from oprag._internal.warn import warn
from oprag.agents.layouts import Layout, check_layout
from oprag.agents.working_context import WorkingContext
from oprag.errors import MissingExtraError, OptionError, RetrievalWarning
from oprag.langchain.cited_messages import annotated, without_annotations
from oprag.langchain.search_results import (
    STATE_KEY,
    as_tool_names,
    gather,
    lay_out_messages,
    working_context_of,
)
from oprag.langchain.source_files import FileUpdate, SourceFiles
from oprag.options import ContextOptions, check_bool, check_names

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse, ToolCallRequest
    from langchain.agents.middleware.types import PrivateStateAttr
    from langchain_core.messages import ToolMessage
    from langgraph.types import Command
except ImportError as error:
    raise MissingExtraError("OrderPreservingMiddleware", "langchain") from error

__all__ = ["OrderPreservingMiddleware", "WorkingContextState"]


_SUBAGENTS = "subagent_contexts"


def _pending(known: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any]:
    """Combine the working contexts of parallel subagents; None clears them."""
    return {} if new is None else {**(known or {}), **new}


class WorkingContextState(AgentState[Any]):
    """The state of an agent with a working context.

    Attributes:
        working_context: The gathered chunks and searches, as plain values; `working_context_of` reads it.
        subagent_contexts: The working contexts of subagents until they are gathered, by the id of the tool call.
    """

    working_context: NotRequired[dict[str, Any]]
    subagent_contexts: NotRequired[Annotated[dict[str, Any], PrivateStateAttr, _pending]]


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
        files: For an agent of `create_deep_agent`: True writes one file for each source to the files of the agent, with
            the passages that were found in the order of the source; the messages of search results then contain the
            paths and what is new. An agent with a `backend` needs the same backend here.
        cite: Whether the text of the agent's answer gets LangChain's `Citation` annotations for its markers, such as
            [1], as in `cited_message`, and those of the provider what is known of their passages. All of this is
            removed before each call of the model.
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
        files: Any = False,
        cite: bool = False,
        **changes: Any,
    ) -> None:
        super().__init__()
        check_layout(layout, compact_above)
        ours = ("layout", "compact_above", "search_tools", "files", "cite")
        check_names(changes, [*(field.name for field in fields(ContextOptions)), *ours])
        # Validates the options as the working context will.
        self._options = WorkingContext(options, **changes).options
        self._layout = layout
        self._compact_above = compact_above
        self._search_tools = as_tool_names(search_tools)
        self._files = None if files is False else SourceFiles(files)
        of_messages = {"layout": layout != "delta", "token_budget": self._options.token_budget is not None}
        if self._files and (name := next((name for name, given in of_messages.items() if given), None)):
            raise OptionError(f"{name} concerns the text of messages, which is in files with files=; remove one", files)
        check_bool("cite", cite)
        self._cite = cite

    def before_model(self, state: WorkingContextState, runtime: Any) -> dict[str, Any] | None:
        """Gather the new search results, in the order of the tool calls."""
        update, files = self._gather(state, runtime)
        if self._files and files:
            self._files.save(files)
        return update

    async def abefore_model(self, state: WorkingContextState, runtime: Any) -> dict[str, Any] | None:
        """Async version of `before_model`."""
        update, files = self._gather(state, runtime)
        if self._files and files:
            await self._files.asave(files)
        return update

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Call the tool; keep what a subagent gathered for `before_model`, which joins it in the order of the calls."""
        return _deferred(handler(request), request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """Async version of `wrap_tool_call`."""
        return _deferred(await handler(request), request)

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

    def _gather(self, state: WorkingContextState, runtime: Any) -> tuple[dict[str, Any] | None, FileUpdate | None]:
        """The update of the state, and the files to save."""
        working = working_context_of(state, self._options)
        pending = state.get("subagent_contexts")
        gathered = gather(state, working, self._search_tools, pending, shown=self._files is None)
        if not gathered.changed:
            return None, None
        update: dict[str, Any] = {STATE_KEY: working.to_dict(), **({_SUBAGENTS: None} if pending else {})}
        if self._files is None:
            return {**update, "messages": [*(one.message for one in gathered.results), *gathered.answers]}, None
        files = self._files.update(state, runtime, working, gathered)
        return {**update, **files.state, "messages": files.messages}, files

    def after_agent(self, state: WorkingContextState, runtime: Any) -> dict[str, Any] | None:  # noqa: ARG002
        """Annotate the answer with its citations."""
        answer = state["messages"][-1] if state["messages"] else None
        if not self._cite or not isinstance(answer, AIMessage) or answer.tool_calls:
            return None
        citations = working_context_of(state, self._options).cited(answer).citations
        return {"messages": [annotated(answer, citations)]} if citations else None

    async def aafter_agent(self, state: WorkingContextState, runtime: Any) -> dict[str, Any] | None:
        """Async version of `after_agent`."""
        return self.after_agent(state, runtime)

    def _laid_out(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        self._warn_about_tools(request.tools)
        if self._files:
            # The texts are in files: nothing of the state is needed here.
            return request.override(messages=[*map(without_annotations, request.messages)])
        working = working_context_of(request.state, self._options)
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


def _deferred(result: ToolMessage | Command[Any], request: ToolCallRequest) -> ToolMessage | Command[Any]:
    """Move the working context of a subagent to a key under which the results of parallel calls are combined."""
    if not isinstance(result, Command) or result.graph is not None or not isinstance(result.update, Mapping):
        return result
    update = dict(result.update)
    if not isinstance(update.get(STATE_KEY), Mapping):
        return result
    update[_SUBAGENTS] = {str(request.tool_call["id"]): update.pop(STATE_KEY)}
    return replace(result, update=update)
