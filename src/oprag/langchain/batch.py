"""Several questions at once, under one limit."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from oprag.langchain.asking import shared_limit
from oprag.side_by_side import Limit

__all__ = ["Batching", "enter_batch"]

_running: ContextVar[list[asyncio.Task[Any]] | None] = ContextVar("running", default=None)


class Batching(Runnable[Any, Any]):
    """`batch` and `abatch` as LangChain has them, but `max_concurrency` counts the calls of all questions together.

    And where one question fails and with it the batch, the others are cancelled and not left running.
    """

    def batch(
        self, inputs: list[Any], config: Any = None, *, return_exceptions: bool = False, **kwargs: Any
    ) -> list[Any]:
        """Answer several questions."""
        with _one_limit(config):
            return super().batch(inputs, config, return_exceptions=return_exceptions, **kwargs)

    async def abatch(
        self, inputs: list[Any], config: Any = None, *, return_exceptions: bool = False, **kwargs: Any
    ) -> list[Any]:
        """Answer several questions, async."""
        running: list[asyncio.Task[Any]] = []
        token = _running.set(running)
        try:
            with _one_limit(config):
                return await super().abatch(inputs, config, return_exceptions=return_exceptions, **kwargs)
        finally:
            _running.reset(token)
            others = [task for task in running if task is not asyncio.current_task()]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)


def enter_batch() -> None:
    """Let a failing sibling in `abatch` cancel the task that runs this."""
    running, task = _running.get(), asyncio.current_task()
    if running is not None and task is not None:
        running.append(task)


@contextmanager
def _one_limit(config: RunnableConfig | Sequence[RunnableConfig] | None) -> Iterator[None]:
    """One limit for all questions that are begun here, where the caller names one."""
    first = config[0] if isinstance(config, Sequence) and config else config
    size = first.get("max_concurrency") if isinstance(first, dict) else None
    token = shared_limit.set(Limit(size) if size else None)
    try:
        yield
    finally:
        shared_limit.reset(token)
