"""What the tools search and read: any store or retriever of LangChain or LlamaIndex, or an index of documents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from functools import partial
from importlib import import_module
from threading import Thread
from typing import Any, NamedTuple

import anyio

from oprag.agents.reading import StoredSources
from oprag.agents.tools import gathering_options
from oprag.context import Context
from oprag.index.document_index import DocumentIndex
from oprag.options import ContextOptions

__all__ = ["Searched", "loading", "searched"]

_INTERVAL = 0.25  # seconds between two reports of progress


class Searched(NamedTuple):
    """A searched store."""

    search: Callable[[str], Awaitable[Context]]  # returns the context of a question
    sources: StoredSources  # the sources of the store, as far as the search can find them
    options: ContextOptions  # the options of a working context for its chunks


def searched(store: Any, token_budget: int, options: dict[str, Any]) -> Searched:
    """Search and read a store with options of the `OrderPreservingRetriever` of its framework."""
    if any(base.__module__.partition(".")[0] == "llama_index" for base in type(store).__mro__):
        framework = "llama_index"
    else:
        framework = "langchain"
        if isinstance(store, DocumentIndex):
            store = import_module("oprag.langchain").DocumentIndexRetriever(index=store)
    # mypy could not tell that the modules of both frameworks have the same functions.
    search_tool: Any = import_module(f"oprag.{framework}.search_tool")
    reading_tools: Any = import_module(f"oprag.{framework}.reading_tools")
    if not isinstance(store, search_tool.OrderPreservingRetriever):
        options = {"token_budget": token_budget, **options}
    retrieving = search_tool.tool_retriever(store, options)._for_many_searches()  # noqa: SLF001
    in_thread = partial(anyio.to_thread.run_sync, retrieving.get_context)
    search = in_thread if search_tool.blocks(retrieving) else retrieving.aget_context
    return Searched(
        search, reading_tools.sources_of(retrieving, token_budget), gathering_options(retrieving.context_options)
    )


def loading(make: Callable[[Callable[[int, int], None]], Searched]) -> Callable[[Any], Awaitable[Searched]]:
    """Make a store in a thread from now on; returns a function that waits for it, and reports progress to a call."""
    made: Future[Searched] = Future()
    progress: tuple[int, int | None] = 0, None

    def report(done: int, total: int) -> None:
        nonlocal progress
        progress = done, total or None

    def run() -> None:
        try:
            made.set_result(make(report))
        except BaseException as error:  # noqa: BLE001 - each call raises it
            made.set_exception(error)

    async def wait(context: Any) -> Searched:
        while not made.done():
            await context.report_progress(*progress)
            await anyio.sleep(_INTERVAL)
        return made.result()

    # A daemon, because a client that closes the connection does not wait.
    Thread(target=run, daemon=True).start()
    return wait
