"""The search results of an agent in its workflow context: gathering them, and what the model reads of them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

from llama_index.core.llms import ChatMessage, MessageRole, TextBlock
from llama_index.core.memory import BaseMemory, Memory
from llama_index.core.storage.chat_store.base_db import MessageStatus

from oprag.chunk import Chunk
from oprag.context import Context
from oprag.options import ContextOptions
from oprag.working_context import Delta, Layout, WorkingContext

__all__ = ["STATE_KEY", "gather_search_results", "lay_out_messages", "with_note", "working_context_of"]

STATE_KEY = "working_context"
"""The key of a context's store that has the working context, as plain values."""

# Where LlamaIndex's agents keep the messages of the run, and those of earlier ones.
_MESSAGES = "scratchpad"
_REASONING = "current_reasoning"
_MEMORY = "memory"
_STEP = "num_iterations"
# Beside the values of the working context.
_NOTES = "notes"
_BUDGET = "token_budget"
_BETWEEN = "\n\n"


async def working_context_of(ctx: Any, options: ContextOptions | None = None, **changes: Any) -> WorkingContext:
    """The working context of an agent's run, such as for the citations in its answer.

    Args:
        ctx: The `Context` that the agent ran with, or `handler.ctx`.
        options: The options, as the search tool has them.
        **changes: Options of `ContextOptions` to change.

    Returns:
        The working context; an empty one where nothing was searched for. It is a copy: adding to it changes nothing for
        the agent.

    Raises:
        DataError: The store of the context has something else under "working_context".
        OptionError: An option is unknown or invalid.
    """
    data = await ctx.store.get(STATE_KEY, default=None)
    return _read(data, options, **changes)


def _read(data: Any, options: ContextOptions | None, **changes: Any) -> WorkingContext:
    """The working context that a store has; an empty one where it has none."""
    return WorkingContext(options, **changes) if data is None else WorkingContext.from_dict(data, options, **changes)


@dataclass(eq=False)
class _Live:
    """What need not be read again while one run goes on.

    Attributes:
        loop: The event loop that the lock is for.
        lock: Held while a search is added, since tools run at the same time.
        data: The plain values that `working` was written as.
        working: The working context.
        step: The step of the agent in which the searches in `arriving` were made.
        arriving: Searches whose messages the agent has not got yet: it gets those of parallel calls together.
        lost: Searches that were forgotten.
    """

    loop: asyncio.AbstractEventLoop
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    data: Any = None
    working: WorkingContext | None = None
    step: Any = None
    arriving: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)


# By the store of a run: a second run with the same context has a store of its own.
_live: WeakKeyDictionary[Any, _Live] = WeakKeyDictionary()


async def gather_search_results(
    ctx: Any, found: Context | Sequence[Chunk], options: ContextOptions, note: str | None = None
) -> Delta:
    """Add what a search found to the working context in a context's store.

    What fails leaves the store as it was.

    Args:
        ctx: The context.
        found: What was found, with its ranks.
        options: The options of the working context.
        note: For what was read instead of searched for: a line that follows its text in every layout. The token budget
            is then that of the last search.
    """
    store = ctx.store
    loop = asyncio.get_running_loop()
    live = _live.get(store)
    if live is None or live.loop is not loop:
        live = _live[store] = _Live(loop)
    async with live.lock:
        data = await store.get(STATE_KEY, default=None)
        notes, budget = _notes_in(data), options.token_budget
        if note is not None:
            budget = data.get(_BUDGET) if isinstance(data, Mapping) else None
            options = replace(options, token_budget=budget)
        working = live.working
        if working is None or data is not live.data or working.options != options:
            working = _read(data, options)
        live.working = None
        step = await store.get(_STEP, default=None)
        arriving = live.arriving if step == live.step else set()
        known = [name for name in working.searches if name not in live.lost and name not in arriving]
        lost = await _unseen(store, working, notes, known) if known else set()
        working.forget(lost)
        delta = working.add(found)
        if note:
            notes[working.searches[-1]] = note
        # What reads a working context leaves these alone.
        added = {name: value for name, value in ((_NOTES, notes), (_BUDGET, budget)) if value}
        data = {**working.to_dict(), **added}
        await store.set(STATE_KEY, data)
        live.data, live.working, live.step = data, working, step
        live.arriving = arriving | {working.searches[-1]}
        live.lost |= lost
    return delta


async def lay_out_messages(
    ctx: Any,
    messages: Sequence[ChatMessage],
    options: ContextOptions | None,
    *,
    layout: Layout = "delta",
    compact_above: int = 0,
) -> list[ChatMessage]:
    """The messages of a prompt with the search results as the model should read them; others stay the same objects."""
    data = await ctx.store.get(STATE_KEY, default=None)
    working, notes = _read(data, options), _notes_in(data)
    places: list[int] = []
    names: list[str] = []
    left = list(working.searches)
    for place, message in enumerate(messages):
        if message.role == MessageRole.TOOL and (name := _search_of(message.content, left, working, notes)) is not None:
            places.append(place)
            names.append(name)
            left.remove(name)
    if layout == "compact" and working.tokens <= compact_above:
        layout = "delta"
    laid_out = list(messages)
    if not names or (layout == "delta" and names == list(working.searches)):
        return laid_out
    for place, name, bare in zip(places, names, working.layout(names, layout), strict=True):
        message, text = messages[place], with_note(bare, notes.get(name, ""))
        if text != message.content:
            laid_out[place] = message.model_copy(update={"blocks": [TextBlock(text=text)]})
    return laid_out


def with_note(text: str, note: str) -> str:
    """The text of a result with the note of what was read."""
    return _BETWEEN.join(filter(None, (text, note)))


def _without_note(text: str, note: str) -> str:
    return text.removesuffix(note).removesuffix(_BETWEEN) if note and text.endswith(note) else text


def _notes_in(data: Any) -> dict[str, str]:
    """The notes of what was read, by the names of their searches."""
    notes = data.get(_NOTES) if isinstance(data, Mapping) else None
    return {name: note for name, note in notes.items() if isinstance(note, str)} if isinstance(notes, Mapping) else {}


async def _unseen(store: Any, working: WorkingContext, notes: Mapping[str, str], names: Sequence[str]) -> set[str]:
    """Those of some searches whose text the model does not see any more.

    An agent keeps the messages of its run aside, and its memory may have dropped some of earlier runs. Where neither
    is known, as in a workflow of one's own, everything counts as seen.
    """
    messages = await store.get(_MESSAGES, default=None)
    reasoning = await store.get(_REASONING, default=None)
    memory = await store.get(_MEMORY, default=None)
    if messages is None and reasoning is None and memory is None:
        return set()
    left = list(names)
    if messages:
        _remove(left, working, notes, (message.content for message in messages))
    else:
        # After a handoff from a ReAct agent to a FunctionAgent its steps are still there, and nobody reads them.
        _remove(left, working, notes, (getattr(step, "observation", None) for step in reasoning or ()))
    if left and isinstance(memory, BaseMemory):
        kept = await _messages_in(memory)
        _remove(left, working, notes, (message.content for message in kept if message.role == MessageRole.TOOL))
        # A ReAct agent leaves one text of all its steps.
        texts = [message.content or "" for message in kept if message.role == MessageRole.ASSISTANT]
        if left and any("Observation: " in text for text in texts):
            made = dict(zip(names, working.layout(names), strict=True))
            left = [
                name
                for name in left
                if not (working.is_text_of(name, made[name]) and any(made[name] in text for text in texts))
            ]
    return set(left)


async def _messages_in(memory: BaseMemory) -> list[ChatMessage]:
    """The messages that the next prompt will have of a memory."""
    if isinstance(memory, Memory):
        # Its blocks may ask models and stores, and have none of these messages.
        return await memory.aget_all(status=MessageStatus.ACTIVE)
    return await memory.aget()


def _remove(names: list[str], working: WorkingContext, notes: Mapping[str, str], texts: Iterable[Any]) -> None:
    """Remove the searches whose texts these are."""
    for text in texts:
        if not names:
            return
        if (name := _search_of(text, names, working, notes)) is not None:
            names.remove(name)


def _search_of(text: Any, names: Collection[str], working: WorkingContext, notes: Mapping[str, str]) -> str | None:
    """The one of some searches that has this text; messages are in their sequence, so it mostly is the first."""
    if not isinstance(text, str):
        return None
    return next((name for name in names if working.is_text_of(name, _without_note(text, notes.get(name, "")))), None)
