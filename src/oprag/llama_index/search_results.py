"""Gather the search results of an agent in its workflow context, and lay them out for the model."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

from llama_index.core.llms import ChatMessage, MessageRole
from llama_index.core.memory import BaseMemory, Memory
from llama_index.core.storage.chat_store.base_db import MessageStatus

from oprag.agents.layouts import Layout
from oprag.agents.search_result_blocks import Form
from oprag.agents.working_context import Delta, WorkingContext
from oprag.chunk import Chunk
from oprag.context import Context
from oprag.errors import OptionError
from oprag.llama_index.cited_messages import blocks_of, content_of
from oprag.options import ContextOptions

__all__ = ["STATE_KEY", "gather_search_results", "lay_out_messages", "working_context_of"]

STATE_KEY = "working_context"
"""The key of the context's store under which the working context is stored, as plain values."""

# Keys under which LlamaIndex's agents store the messages of the current run and of earlier runs.
_MESSAGES = "scratchpad"
_REASONING = "current_reasoning"
_MEMORY = "memory"
_STEP = "num_iterations"
# Stored in the same dictionary as the working context.
_BUDGET = "token_budget"


async def working_context_of(ctx: Any, options: ContextOptions | None = None, **changes: Any) -> WorkingContext:
    """Read the working context of an agent's run, for example to resolve the citations in its answer.

    Args:
        ctx: The `Context` of the agent's run, or `handler.ctx`.
        options: The same options as those of the search tool.
        **changes: Options of `ContextOptions` to change.

    Returns:
        The working context; empty if nothing was searched. It is a copy, so changes to it do not affect the agent.

    Raises:
        DataError: The value under "working_context" in the store of the context is not a working context.
        OptionError: `ctx` is not a context, or an option is unknown or invalid.
    """
    if not hasattr(ctx, "store"):
        raise OptionError(f"expected the Context of the agent's run, got {type(ctx).__name__}", ctx)
    data = await ctx.store.get(STATE_KEY, default=None)
    return _read(data, options, **changes)


def _read(data: Any, options: ContextOptions | None, **changes: Any) -> WorkingContext:
    """Read a working context from the data of a store; an empty one if missing."""
    return WorkingContext(options, **changes) if data is None else WorkingContext.from_dict(data, options, **changes)


@dataclass(eq=False)
class _Live:
    """Lock of one run, and what its next search needs to know."""

    loop: asyncio.AbstractEventLoop  # the event loop of the lock
    # Held while a search is added, since tools may run concurrently.
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    step: Any = None  # the step of the agent that made the searches in `arriving`
    # Searches whose messages are not in the store yet, because the agent adds the results of parallel calls together;
    # with the query of each.
    arriving: dict[str, str] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)  # searches whose text the model no longer sees


# By the store of a run: each run with the same context has its own store.
_live: WeakKeyDictionary[Any, _Live] = WeakKeyDictionary()


async def gather_search_results(
    ctx: Any,
    found: Context | Sequence[Chunk],
    options: ContextOptions,
    query: str,
    *,
    note: str | None = None,
    content: Form = "text",
) -> Delta:
    """Add the chunks that a search found to the working context in a context's store.

    If it fails, the store is not changed.

    If the query is repeated in the same step of the agent, its text is shown again: LlamaIndex reruns a tool that waits
    for a person, and the first result is then lost. Chunks that were read instead of searched have a note, and the
    token budget of the last search.
    """
    store = ctx.store
    loop = asyncio.get_running_loop()
    live = _live.get(store)
    if live is None or live.loop is not loop:
        live = _live[store] = _Live(loop)
    async with live.lock:
        data = await store.get(STATE_KEY, default=None)
        if note is not None:
            options = replace(options, token_budget=_budget_in(data))
        working = _read(data, options)
        step = await store.get(_STEP, default=None)
        arriving = live.arriving if step is not None and step == live.step else {}
        known = [name for name in working.searches if name not in live.forgotten and name not in arriving]
        forgotten = await _unseen(store, working, known) if known else set()
        forgotten |= {name for name, earlier in arriving.items() if earlier == query}
        working.forget(forgotten)
        delta = working.add(found, note=note or "", content=content)
        # `WorkingContext.from_dict` ignores the budget.
        await store.set(STATE_KEY, {**working.to_dict(), _BUDGET: options.token_budget})
        live.step = step
        live.arriving = {**arriving, working.searches[-1]: query}
        live.forgotten |= forgotten
    return delta


async def lay_out_messages(
    ctx: Any,
    messages: Sequence[ChatMessage],
    options: ContextOptions | None,
    *,
    layout: Layout = "delta",
    compact_above: int = 0,
) -> list[ChatMessage]:
    """Lay out the search results in the messages of a prompt; other messages stay the same objects."""
    data = await ctx.store.get(STATE_KEY, default=None)
    # For an agent without a search tool, such as after a handoff, the budget of the last search applies.
    working = _read(data, options or ContextOptions(token_budget=_budget_in(data)))
    found: dict[int, str] = {}
    left = list(working.searches)
    for place, message in enumerate(messages):
        if message.role == MessageRole.TOOL and (name := _search_of(content_of(message), left, working)) is not None:
            found[place] = name
            left.remove(name)
    laid_out = list(messages)
    contents = working.layout([*found.values()], layout, compact_above=compact_above)
    for place, content in zip(found, contents, strict=True):
        if (blocks := blocks_of(content)) != messages[place].blocks:
            laid_out[place] = messages[place].model_copy(update={"blocks": blocks})
    return laid_out


def _budget_in(data: Any) -> int | None:
    """The token budget of the last search."""
    budget = data.get(_BUDGET) if isinstance(data, Mapping) else None
    return budget if type(budget) is int and budget > 0 else None


async def _unseen(store: Any, working: WorkingContext, names: Sequence[str]) -> set[str]:
    """The searches among `names` whose text the model no longer sees; none in a workflow that stores no messages."""
    messages = await store.get(_MESSAGES, default=None)
    reasoning = await store.get(_REASONING, default=None)
    memory = await store.get(_MEMORY, default=None)
    if messages is None and reasoning is None and memory is None:
        return set()
    left = list(names)
    if messages:
        _remove(left, working, map(content_of, messages))
    else:
        # Only without a scratchpad: after a handoff from a ReActAgent to a FunctionAgent, its steps are still stored,
        # but no longer in the prompt.
        _remove(left, working, (getattr(step, "observation", None) for step in reasoning or ()))
    if left and isinstance(memory, BaseMemory):
        # The blocks of a `Memory` may call models and stores, and do not contain these messages.
        if isinstance(memory, Memory):
            kept = await memory.aget_all(status=MessageStatus.ACTIVE)
        else:
            kept = await memory.aget()
        _remove(left, working, (content_of(message) for message in kept if message.role == MessageRole.TOOL))
        # A ReActAgent saves all its steps as one text.
        texts = [message.content or "" for message in kept if message.role == MessageRole.ASSISTANT]
        if left and any("Observation: " in text for text in texts):
            deltas = dict(zip(names, working.layout(names), strict=True))
            left = [name for name in left if not any(str(deltas[name]) in text for text in texts)]
    return set(left)


def _remove(names: list[str], working: WorkingContext, texts: Iterable[Any]) -> None:
    """Remove the searches that have one of these texts."""
    for text in texts:
        if (name := _search_of(text, names, working)) is not None:
            names.remove(name)


def _search_of(content: Any, names: Collection[str], working: WorkingContext) -> str | None:
    """The search with this result; usually the first one, since messages are in the order of their searches."""
    return next((name for name in names if working.is_result_of(name, content)), None) if content else None
