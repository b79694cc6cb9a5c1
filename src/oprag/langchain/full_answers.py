"""What a chain has beside LangChain's interface: answers with everything that is known about them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from typing import Any

from langchain_core.runnables import RunnableConfig

from oprag.langchain.answering_chain import AnsweringChain, once
from oprag.langchain.runs import as_run
from oprag.methods.answer import Answer
from oprag.methods.comparison import Comparison, check_methods

__all__ = ["FullAnswers"]


class FullAnswers(AnsweringChain):
    """Answers, streamed answers, and comparisons of methods."""

    def answer(
        self,
        question: str,
        *,
        choices: Sequence[str] = (),
        chat_history: Sequence[Any] = (),
        filter: Any = None,
        config: RunnableConfig | None = None,
        **inputs: Any,
    ) -> Answer:
        """Answer a question, and tell everything that is known about the answer.

        Args:
            question: The question.
            choices: The answers to choose from, for a multiple-choice question.
            chat_history: What was said before: messages, or pairs of texts.
            filter: For every search for this question, as in `OrderPreservingRetriever.get_context`.
            config: LangChain's config.
            **inputs: Other values that prompts use.

        Raises:
            QueryError: The question is empty or no string.
            ModelError: A call failed, and `on_error="raise"`, or there is no answer without it.
        """
        kept: list[Answer] = []
        inputs = self._as_input(question, choices, chat_history, filter, inputs)
        self._call_with_config(as_run(self._invoke, kept=kept), inputs, config)
        return kept[0]

    async def aanswer(
        self,
        question: str,
        *,
        choices: Sequence[str] = (),
        chat_history: Sequence[Any] = (),
        filter: Any = None,
        config: RunnableConfig | None = None,
        **inputs: Any,
    ) -> Answer:
        """As `answer`, async."""
        kept: list[Answer] = []
        inputs = self._as_input(question, choices, chat_history, filter, inputs)
        await self._acall_with_config(as_run(self._ainvoke, kept=kept), inputs, config)
        return kept[0]

    def stream_answer(
        self,
        question: str,
        *,
        choices: Sequence[str] = (),
        chat_history: Sequence[Any] = (),
        filter: Any = None,
        config: RunnableConfig | None = None,
        **inputs: Any,
    ) -> Iterator[str | Answer]:
        """As `answer`, but gives the pieces of the text as they are written, and the `Answer` last."""
        kept: list[Answer] = []
        given = iter([self._as_input(question, choices, chat_history, filter, inputs)])
        for piece in self._streamed(given, config, kept):
            if isinstance(text := piece.get(self.output_key), str):
                yield text
        yield kept[0]

    async def astream_answer(
        self,
        question: str,
        *,
        choices: Sequence[str] = (),
        chat_history: Sequence[Any] = (),
        filter: Any = None,
        config: RunnableConfig | None = None,
        **inputs: Any,
    ) -> AsyncIterator[str | Answer]:
        """As `stream_answer`, async."""
        kept: list[Answer] = []
        given = once(self._as_input(question, choices, chat_history, filter, inputs))
        async with aclosing(self._astreamed(given, config, kept)) as pieces:
            async for piece in pieces:
                if isinstance(text := piece.get(self.output_key), str):
                    yield text
        yield kept[0]

    def compare(
        self,
        question: str,
        methods: Sequence[str],
        *,
        choices: Sequence[str] = (),
        chat_history: Sequence[Any] = (),
        filter: Any = None,
        config: RunnableConfig | None = None,
        **inputs: Any,
    ) -> Comparison:
        """Answer a question with several methods over one retrieval.

        In a conversation the follow-up is made to stand by itself once, for all of them.

        Args:
            question: The question.
            methods: The names of the methods.
            choices: The answers to choose from, for a multiple-choice question.
            chat_history: What was said before: messages, or pairs of texts.
            filter: For every search for this question, as in `OrderPreservingRetriever.get_context`.
            config: LangChain's config.
            **inputs: Other values that prompts use.

        Returns:
            The answers; a table when it is printed or shown in a notebook.

        Raises:
            OptionError: A method is unknown or lacks what it needs; nothing has been spent then.
            ModelError: A call failed, and `on_error="raise"`, or there is no answer without it.
        """
        check_methods(methods)
        kept: list[Answer] = []
        compare = as_run(self._compare, options=[self._changed(method=method) for method in methods], kept=kept)
        self._call_with_config(compare, self._as_input(question, choices, chat_history, filter, inputs), config)
        return Comparison(question, tuple(kept))

    async def acompare(
        self,
        question: str,
        methods: Sequence[str],
        *,
        choices: Sequence[str] = (),
        chat_history: Sequence[Any] = (),
        filter: Any = None,
        config: RunnableConfig | None = None,
        **inputs: Any,
    ) -> Comparison:
        """As `compare`, async."""
        check_methods(methods)
        kept: list[Answer] = []
        compare = as_run(self._acompare, options=[self._changed(method=method) for method in methods], kept=kept)
        await self._acall_with_config(compare, self._as_input(question, choices, chat_history, filter, inputs), config)
        return Comparison(question, tuple(kept))

    def _as_input(
        self, question: Any, choices: Any, chat_history: Any, wanted: Any, inputs: dict[str, Any]
    ) -> dict[str, Any]:
        said = {key: value for key, value in (("choices", choices), ("chat_history", chat_history)) if value}
        return {**inputs, **said, **({} if wanted is None else {"filter": wanted}), self.input_key: question}
