"""What an engine has beside LlamaIndex's interface: answers with everything that is known about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index_instrumentation import get_dispatcher

from oprag.context import Context
from oprag.llama_index.answering_engine import AnsweringEngine
from oprag.methods.answer import Answer
from oprag.methods.answering import answering
from oprag.methods.comparison import Comparison, check_methods
from oprag.methods.driver import drive, prepare
from oprag.methods.model_calls import Completion, Prompt
from oprag.methods.options import MethodOptions
from oprag.steps import Steps, run_async, run_sync

__all__ = ["FullAnswers"]

dispatcher = get_dispatcher(__name__)


class FullAnswers(AnsweringEngine):
    """Answers, and comparisons of methods."""

    @dispatcher.span
    def answer(self, question: str, *, choices: Sequence[str] = (), chat_history: Sequence[Any] = ()) -> Answer:
        """Answer a question, and tell everything that is known about the answer.

        Args:
            question: The question.
            choices: The answers to choose from, for a multiple-choice question.
            chat_history: What was said before, as LlamaIndex's chat messages.

        Raises:
            QueryError: The question is empty or no string.
            ModelError: A call failed, and `on_error="raise"`, or there is no answer without it.
        """
        steps = self._answered(question, choices, chat_history)
        with self.callback_manager.as_trace("query"):
            return run_sync(steps)

    @dispatcher.span
    async def aanswer(self, question: str, *, choices: Sequence[str] = (), chat_history: Sequence[Any] = ()) -> Answer:
        """As `answer`, async."""
        steps = self._answered(question, choices, chat_history)
        with self.callback_manager.as_trace("query"):
            return await run_async(steps)

    @dispatcher.span
    def compare(
        self,
        question: str,
        methods: Sequence[str],
        *,
        choices: Sequence[str] = (),
        chat_history: Sequence[Any] = (),
    ) -> Comparison:
        """Answer a question with several methods over one retrieval.

        In a conversation the follow-up is made to stand by itself once, for all of them.

        Args:
            question: The question.
            methods: The names of the methods.
            choices: The answers to choose from, for a multiple-choice question.
            chat_history: What was said before, as LlamaIndex's chat messages.

        Returns:
            The answers; a table when it is printed or shown in a notebook.

        Raises:
            OptionError: A method is unknown or lacks what it needs; nothing has been spent then.
            ModelError: A call failed, and `on_error="raise"`, or there is no answer without it.
        """
        tried = self._tried(methods)
        with self.callback_manager.as_trace("query"):
            return run_sync(self._compared(question, tried, choices, chat_history))

    @dispatcher.span
    async def acompare(
        self,
        question: str,
        methods: Sequence[str],
        *,
        choices: Sequence[str] = (),
        chat_history: Sequence[Any] = (),
    ) -> Comparison:
        """As `compare`, async."""
        tried = self._tried(methods)
        with self.callback_manager.as_trace("query"):
            return await run_async(self._compared(question, tried, choices, chat_history))

    def _answered(self, question: str, choices: Sequence[str], chat_history: Sequence[Any]) -> Steps[Answer]:
        backend = self._backend(self._options)
        task = self._task(question, self._options, backend, choices, chat_history)
        return drive(answering(task), backend, self._limit(), stop_early=self._stop_early)

    def _tried(self, methods: Sequence[str]) -> list[MethodOptions]:
        """The options of each method, checked."""
        check_methods(methods)
        return [self._changed(self._reader, method=method) for method in methods]

    def _compared(
        self, question: str, tried: list[MethodOptions], choices: Sequence[str], chat_history: Sequence[Any]
    ) -> Steps[Comparison]:
        answers: list[Answer] = []
        found: dict[str, Context] = {}
        known: dict[Prompt, Completion] = {}
        for options in tried:
            backend = self._backend(options)
            backend.found, backend.known = found, known
            task = self._task(question, options, backend, choices, chat_history)
            # One retrieval for all, and before the clock runs.
            yield from prepare(task, backend)
            answers.append((yield from drive(answering(task), backend, self._limit(), stop_early=self._stop_early)))
        return Comparison(question, tuple(answers))
