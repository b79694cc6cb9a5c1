"""An MCP server with which any client searches and reads documents in the order of their source."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

import anyio
from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from oprag._internal.masking import masked_error
from oprag.agents.reading import Reading
from oprag.agents.tools import (
    NOTHING,
    READING_TOOLS,
    SEARCH,
    AgentTool,
    Argument,
    ReadingTool,
    check_tool_name,
    schema_of,
    warn_if_unreadable,
)
from oprag.errors import OpragError
from oprag.mcp.sdk import CallContext, Server, ToolError, read_only, result, result_type, session_of
from oprag.mcp.searched import Searched, loading, searched
from oprag.mcp.sessions import Sessions
from oprag.options import check_count

__all__ = ["FoundPassages", "create_mcp_server", "server_of"]

_INSTRUCTIONS = (
    "Search the documents, then read around what you found: passages are in the order of their document. Cite passages "
    "by their numbers, such as [1]."
)
_MAX_LENGTH = 4_000  # characters of an argument
_SHOW_AGAIN = Argument(
    bool,
    "Whether passages that were shown before are shown again with their text. Set it at the beginning of a "
    "conversation, and when earlier results are no longer visible.",
    default=False,
)


class Document(BaseModel):
    """A chunk of a document, in the form of LangChain's documents.

    Attributes:
        number: Its number in the text; None without numbers.
        page_content: Its text.
        metadata: Its source and position.
        id: Its id in the store.
    """

    number: int | None
    page_content: str
    metadata: dict[str, Any]
    id: str | None


class FoundPassages(BaseModel):
    """The result of a search or a reading as data.

    Attributes:
        documents: The chunks in the order of the text.
    """

    documents: list[Document]


def create_mcp_server(
    store: Any, *, name: str = "oprag", token_budget: int = 4_000, numbered: bool = True, **options: Any
) -> Any:
    """Create an MCP server with the tools `search`, `read_around`, `read_range`, `outline` and `grep` over a store.

    All tools only read, and only what the search can find under its filter: create a server for each tenant. Results
    are in the order of their source. In one session (a process over stdio, an `Mcp-Session-Id` over HTTP), each passage
    has one number and is shown once; a client that begins a new conversation in the same session sets `show_again`.
    Without sessions, as in protocol version 2026-07-28 over HTTP, each result is complete and has numbers of its own.

    Args:
        store: A vector store, a retriever or an index, of LangChain or LlamaIndex; an `oprag.DocumentIndex`; or an
            `OrderPreservingRetriever`.
        name: The name of the server.
        token_budget: Maximum number of tokens of the passages in a result, counted with `count_tokens`. For an
            `OrderPreservingRetriever`, its own budget applies to searches.
        numbered: Whether passages have numbers, each is shown once, and there is the tool `read_around`. False for a
            client that numbers passages itself, such as an agent with `OrderPreservingMiddleware`.
        **options: Options of `OrderPreservingRetriever`. For a store, `k` is 16 by default.

    Returns:
        The server of the installed SDK: `FastMCP` (major 1) or `MCPServer` (major 2). `server.run()` serves on stdio.

    Raises:
        OptionError: `store` is an `OrderPreservingRetriever` and options are given, or `name` or `token_budget` is
            invalid.
        ValidationError: An option is unknown or invalid, or `store` cannot be searched (pydantic's error).

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from langchain_core.vectorstores import InMemoryVectorStore
        >>> store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
        >>> server = create_mcp_server(store)
        >>> server.run()  # doctest: +SKIP
    """
    check_count("token_budget", token_budget, optional=False)
    ready = searched(store, token_budget, options)
    warn_if_unreadable(ready.sources)

    async def opened(_: Any) -> Searched:
        return ready

    return _server(name, opened, numbered=numbered)


def server_of(make: Callable[[Callable[[int, int], None]], Any], *, name: str, token_budget: int) -> Any:
    """Create a server whose store is made in a thread from now on; the calls wait, and report progress."""
    opened = loading(lambda report: searched(make(report), token_budget, {}))
    return _server(name, opened, numbered=True)


def _server(name: str, opened: Callable[[Any], Any], *, numbered: bool) -> Any:
    check_tool_name("name", name)
    server = Server(name, instructions=_INSTRUCTIONS, log_level="WARNING")
    tools = _Tools(opened, numbered=numbered)
    for tool in (SEARCH, *READING_TOOLS):
        if numbered or not getattr(tool, "numbered", False):
            server.add_tool(
                tools.function(tool),
                name=tool.name,
                title=tool.name.replace("_", " ").capitalize(),
                description=tool.description,
                annotations=read_only(),
                structured_output=True,
            )
    return server


class _Tools:
    """The functions of the tools; `opened` returns the store, given the context of a call."""

    def __init__(self, opened: Callable[[Any], Any], *, numbered: bool) -> None:
        self._opened = opened
        self._numbered = numbered
        self._sessions: Sessions | None = None

    def function(self, tool: AgentTool) -> Callable[..., Any]:
        """A function with the arguments of the tool, by which the SDK makes its schema."""
        outline = tool.name == "outline"
        if self._numbered and not outline:
            tool = replace(tool, arguments={**tool.arguments, "show_again": _SHOW_AGAIN})

        async def call(context: Any, **given: Any) -> Any:
            try:
                return await self._called(tool, context, given)
            except OpragError as error:
                raise ToolError(str(error)) from error
            except Exception as error:
                # Messages of stores can contain keys.
                raise ToolError(masked_error(error)) from error

        returned: Any = str if outline else Annotated[result_type(), FoundPassages]
        call.__name__ = tool.name
        call.__annotations__ = {"context": CallContext, "return": returned}
        call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=CallContext),
                *(_parameter(name, one) for name, one in schema_of(tool).model_fields.items()),
            ],
            return_annotation=returned,
        )
        return call

    async def _called(self, tool: AgentTool, context: Any, given: dict[str, Any]) -> Any:
        store: Searched = await self._opened(context)
        if self._sessions is None:
            self._sessions = Sessions(store.options)
        session = self._sessions.of(session_of(context) if self._numbered else None)
        show_again = given.pop("show_again", False)
        if isinstance(tool, ReadingTool):
            read = tool.read
            reading: Reading = await anyio.to_thread.run_sync(lambda: read(store.sources, session.working, **given))
        else:
            found = await store.search(given["query"])
            reading = Reading(list(found.kept), found.text or NOTHING, "")
        if tool.name == "outline":
            return reading.text
        if not reading.chunks:
            return result(reading.text, {"documents": []})
        text, gathered = await anyio.to_thread.run_sync(
            lambda: session.add(reading.chunks, reading.note, show_again=show_again)
        )
        documents = [
            {
                "number": number if self._numbered else None,
                "page_content": chunk.text,
                "metadata": to_jsonable_python(chunk.metadata, fallback=str),
                "id": chunk.id,
            }
            for number, chunk in gathered.items()
        ]
        return result(text if self._numbered else reading.text, {"documents": documents})


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    kind: Any = Annotated[(field.annotation, *field.metadata, Field(description=field.description))]
    if field.annotation in (str, str | None):
        kind = Annotated[kind, Field(max_length=_MAX_LENGTH)]
    default = inspect.Parameter.empty if field.is_required() else field.default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
