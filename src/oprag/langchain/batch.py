"""Several questions at once, under one limit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import get_config_list

from oprag.langchain.answering_chain import AnsweringChain
from oprag.langchain.asking import shared_limit
from oprag.steps import Limit, Parallel, Step, Steps

__all__ = ["Batching"]


class Batching(AnsweringChain):
    """`batch` and its kin as LangChain has them, but `max_concurrency` counts the calls of all questions together.

    A `max_concurrency` in the config replaces that of the chain. Where one question fails and with it the batch, the
    others are cancelled and not left running.
    """

    def batch(
        self, inputs: list[Any], config: Any = None, *, return_exceptions: bool = False, **kwargs: Any
    ) -> list[Any]:
        """Answer several questions."""
        with self._one_limit(config):
            return super().batch(inputs, config, return_exceptions=return_exceptions, **kwargs)

    def batch_as_completed(
        self, inputs: Sequence[Any], config: Any = None, *, return_exceptions: bool = False, **kwargs: Any
    ) -> Iterator[tuple[int, Any]]:
        """Answer several questions, and give each answer with its number when it is there."""
        answers = super().batch_as_completed(inputs, config, return_exceptions=return_exceptions, **kwargs)  # type: ignore[call-overload]
        with self._one_limit(config):
            # All of them are begun with the first step.
            first = next(answers, None)
        if first is not None:
            yield first
            yield from answers

    async def abatch(
        self, inputs: list[Any], config: Any = None, *, return_exceptions: bool = False, **kwargs: Any
    ) -> list[Any]:
        """Answer several questions, async."""
        configs = get_config_list(config, len(inputs))

        def answer(number: int) -> Steps[Any]:
            given = inputs[number], configs[number]
            try:
                return (yield Step(lambda: self.invoke(*given, **kwargs), lambda: self.ainvoke(*given, **kwargs)))
            except Exception as error:
                if return_exceptions:
                    return error
                raise

        with self._one_limit(config):
            bodies = [partial(answer, number) for number in range(len(inputs))]
            return await Parallel(bodies, Limit(_size(config) or len(inputs) or 1)).arun()

    async def abatch_as_completed(
        self, inputs: Sequence[Any], config: Any = None, *, return_exceptions: bool = False, **kwargs: Any
    ) -> AsyncIterator[tuple[int, Any]]:
        """As `batch_as_completed`, async; who stops reading cancels the questions that are left."""
        configs = get_config_list(config, len(inputs))
        questions = asyncio.Semaphore(_size(config) or len(inputs) or 1)

        async def answer(number: int) -> tuple[int, Any]:
            async with questions:
                try:
                    return number, await self.ainvoke(inputs[number], configs[number], **kwargs)
                except Exception as error:
                    if return_exceptions:
                        return number, error
                    raise

        with self._one_limit(config):
            tasks = [asyncio.ensure_future(answer(number)) for number in range(len(inputs))]
        try:
            for answered in asyncio.as_completed(tasks):
                yield await answered
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    @contextmanager
    def _one_limit(self, config: RunnableConfig | Sequence[RunnableConfig] | None) -> Iterator[None]:
        """One limit for the calls of all questions that are begun here."""
        token = shared_limit.set(Limit(_size(config) or self.max_concurrency))
        try:
            yield
        finally:
            shared_limit.reset(token)


def _size(config: RunnableConfig | Sequence[RunnableConfig] | None) -> int | None:
    """The number that the caller gives; as in LangChain, that of the first question holds for all."""
    first = config[0] if isinstance(config, Sequence) and config else config
    return first.get("max_concurrency") if isinstance(first, dict) else None
