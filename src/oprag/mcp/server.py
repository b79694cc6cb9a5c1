"""An MCP server with which any client searches and reads documents in the order of their source."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from importlib import import_module
from threading import Lock, Thread
from typing import Annotated, Any, NamedTuple

import anyio
from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from oprag._internal.masking import masked_error
from oprag.agents.numbered_text import NOTHING
from oprag.agents.reading import Reading, StoredSources
from oprag.agents.tools import (
    READING_TOOLS,
    SEARCH,
    AgentTool,
    Argument,
    ReadingTool,
    check_tool_name,
    gathering_options,
    schema_of,
    warn_if_unreadable,
)
from oprag.agents.working_context import WorkingContext
from oprag.chunk import Chunk
from oprag.context import Context
from oprag.errors import OpragError
from oprag.index.document_index import DocumentIndex
from oprag.mcp.sdk import READ_ONLY, CallContext, CallToolResult, Server, ToolError, result, session_of
from oprag.options import ContextOptions, check_count

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
_INTERVAL = 0.25  # seconds between two reports of progress
_MAX_SESSIONS = 100
_MAX_CALLS = 500  # calls of a session that are remembered

_REPEATED = "(Passages without text were shown before; call again with show_again=true to read their text.)"
_RENUMBERED = "(Earlier passage numbers are no longer valid; numbering restarts at 1.)"


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
    ready = _searched(store, token_budget, options)
    warn_if_unreadable(ready.sources)

    async def opened(_: Any) -> _Searched:
        return ready

    return _server(name, opened, numbered=numbered)


def server_of(make: Callable[[Callable[[int, int], None]], Any], *, name: str, token_budget: int) -> Any:
    """Create a server whose store is made in a thread from now on; the calls wait, and report progress."""
    opened = _loading(lambda report: _searched(make(report), token_budget, {}))
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
                annotations=READ_ONLY,
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

        returned: Any = str if outline else Annotated[CallToolResult, FoundPassages]
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
        store: _Searched = await self._opened(context)
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


class _Searched(NamedTuple):
    """A searched store."""

    search: Callable[[str], Awaitable[Context]]  # returns the context of a question
    sources: StoredSources  # the sources of the store, as far as the search can find them
    options: ContextOptions  # the options of a working context for its chunks


def _searched(store: Any, token_budget: int, options: dict[str, Any]) -> _Searched:
    """Search and read a store with options of the `OrderPreservingRetriever` of its framework."""
    if any(base.__module__.partition(".")[0] == "llama_index" for base in type(store).__mro__):
        framework = "llama_index"
    else:
        framework = "langchain"
        if isinstance(store, DocumentIndex):
            store = import_module("oprag.langchain").DocumentIndexRetriever(index=store)
    # mypy could not tell that the modules of both frameworks have the same functions.
    tools: Any = import_module(f"oprag.{framework}.tools")
    if not isinstance(store, tools.OrderPreservingRetriever):
        options = {"token_budget": token_budget, **options}
    retrieving = tools.tool_retriever(store, options)._for_many_searches()  # noqa: SLF001
    in_thread = partial(anyio.to_thread.run_sync, retrieving.get_context)
    search = in_thread if tools.blocks(retrieving) else retrieving.aget_context
    return _Searched(search, tools.sources_of(retrieving, token_budget), gathering_options(retrieving.context_options))


def _loading(make: Callable[[Callable[[int, int], None]], _Searched]) -> Callable[[Any], Awaitable[_Searched]]:
    """Make a store in a thread from now on; returns a function that waits for it, and reports progress to a call."""
    made: Future[_Searched] = Future()
    progress: tuple[int, int | None] = 0, None

    def report(done: int, total: int) -> None:
        nonlocal progress
        progress = done, total or None

    def run() -> None:
        try:
            made.set_result(make(report))
        except BaseException as error:  # noqa: BLE001 - each call raises it
            made.set_exception(error)

    async def wait(context: Any) -> _Searched:
        while not made.done():
            await context.report_progress(*progress)
            await anyio.sleep(_INTERVAL)
        return made.result()

    # A daemon, because a client that closes the connection does not wait.
    Thread(target=run, daemon=True).start()
    return wait


class Session:
    """The working context of one session, for several threads; emptied after many calls, as a client may not end."""

    def __init__(self, options: ContextOptions) -> None:
        self._options = options
        self._lock = Lock()
        self._working = WorkingContext(options)
        self._calls = 0

    @property
    def working(self) -> WorkingContext | None:
        """The working context; None if nothing was gathered."""
        return self._working if len(self._working) else None

    def add(self, found: Iterable[Chunk], note: str, *, show_again: bool) -> tuple[str, dict[int, Chunk]]:
        """Gather chunks; returns the text for the model, and the chunks by their numbers, in the order of the text."""
        with self._lock:
            notes = [note]
            if self._calls >= _MAX_CALLS:
                self._working, self._calls = WorkingContext(self._options), 0
                notes.append(_RENUMBERED)
            self._calls += 1
            if show_again:
                self._working.forget(self._working.searches)
            delta = self._working.add(found, note="\n".join(filter(None, notes)))
            text = f"{delta.text}\n\n{_REPEATED}" if delta.repeated else delta.text
            return text, {number: self._working.chunk(number) for number in delta.numbers}


class Sessions:
    """The sessions of a server; the least recently used ones are dropped."""

    def __init__(self, options: ContextOptions) -> None:
        self._options = options
        self._lock = Lock()
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def of(self, name: str | None) -> Session:
        """The session with this name; a new one for None."""
        if name is None:
            return Session(self._options)
        with self._lock:
            session = self._sessions.pop(name, None) or Session(self._options)
            self._sessions[name] = session
            if len(self._sessions) > _MAX_SESSIONS:
                self._sessions.popitem(last=False)
            return session
