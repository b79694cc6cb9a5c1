"""What an engine has beside LlamaIndex's interface: answers with everything that is known about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from llama_index_instrumentation import get_dispatcher

from oprag.context import Context
from oprag.llama_index.answering_engine import AnsweringEngine
from oprag.llama_index.backend import AsyncLlamaIndexBackend, LlamaIndexBackend
from oprag.methods.answer import Answer
from oprag.methods.answering import answering
from oprag.methods.comparison import Comparison, check_methods
from oprag.methods.drive import Shown, adrive, aprepare, drive, prepare
from oprag.methods.model_calls import Completion, Prompt

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
        backend = self._parts(LlamaIndexBackend, self._options)
        task = self._task(question, self._options, backend, choices, chat_history)
        with self.callback_manager.as_trace("query"):
            return _answer_in(drive(answering(task), backend, self._limit(), stop_early=self._stop_early))

    @dispatcher.span
    async def aanswer(self, question: str, *, choices: Sequence[str] = (), chat_history: Sequence[Any] = ()) -> Answer:
        """As `answer`, async."""
        backend = self._parts(AsyncLlamaIndexBackend, self._options)
        task = self._task(question, self._options, backend, choices, chat_history)
        with self.callback_manager.as_trace("query"):
            shown = adrive(answering(task), backend, self._limit(), stop_early=self._stop_early)
            return _answer_in([one async for one in shown])

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
        check_methods(methods)
        tried = [self._changed(self._reader, method=method) for method in methods]
        answers: list[Answer] = []
        found: dict[str, Context] = {}
        known: dict[Prompt, Completion] = {}
        with self.callback_manager.as_trace("query"):
            for options in tried:
                backend = self._parts(LlamaIndexBackend, options)
                backend.found, backend.known = found, known
                task = self._task(question, options, backend, choices, chat_history)
                # One retrieval for all, and before the clock runs.
                prepare(task, backend)
                answers.append(_answer_in(drive(answering(task), backend, self._limit(), stop_early=self._stop_early)))
        return Comparison(question, tuple(answers))

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
        check_methods(methods)
        tried = [self._changed(self._reader, method=method) for method in methods]
        answers: list[Answer] = []
        found: dict[str, Context] = {}
        known: dict[Prompt, Completion] = {}
        with self.callback_manager.as_trace("query"):
            for options in tried:
                backend = self._parts(AsyncLlamaIndexBackend, options)
                backend.found, backend.known = found, known
                task = self._task(question, options, backend, choices, chat_history)
                await aprepare(task, backend)
                shown = adrive(answering(task), backend, self._limit(), stop_early=self._stop_early)
                answers.append(_answer_in([one async for one in shown]))
        return Comparison(question, tuple(answers))


def _answer_in(shown: Iterable[Shown]) -> Answer:
    (answer,) = (one for one in shown if isinstance(one, Answer))
    return answer
