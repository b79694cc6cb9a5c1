"""An answer, and everything that is known about how it came to be."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from oprag.chunk import counted, quoted
from oprag.context import Context
from oprag.methods.citations import Citation, citations_in
from oprag.methods.completion import Call, Usage
from oprag.methods.result import PassageAnswer, Route
from oprag.stitch import Passage

__all__ = ["Answer"]


@dataclass(frozen=True)
class Answer:
    """The answer to a question.

    Its repr is one line; notebooks show question, answer, notes and context. `print(answer)` gives the text alone, and
    `explain()` says how it came to be.

    Attributes:
        question: The question, as it was asked.
        text: The answer; JSON where the model gives objects.
        method: The method that made it.
        contexts: What was retrieved for it, the context of the question first.
        calls: Every call of the model, in the sequence of the method.
        parsed: The model's object, where it gives objects (structured output).
        standalone_question: What a follow-up was taken to mean; None without a conversation.
        route: Which way `self_route` went: "rag" or "long_context".
        answers: What the answer was chosen or made from: the passages' answers and confidences in `map_rerank`, those
            of the other questions in `step_down` and `reciprocal`.
        passages: The passages that the model read, as they are numbered with `cite=True`.
        notes: What a reader should know, such as that a source was cut or a call was skipped.
        seconds: How long it took, retrieval included.
        cited: Whether its passages were numbered, so that markers in the text lead to them.
    """

    question: str
    text: str
    method: str
    contexts: tuple[Context, ...]
    calls: tuple[Call, ...]
    parsed: Any = field(default=None, compare=False)
    standalone_question: str | None = None
    route: Route | None = None
    answers: tuple[PassageAnswer, ...] = ()
    passages: tuple[Passage, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = field(default=0.0, compare=False)
    cited: bool = False

    @property
    def context(self) -> Context | None:
        """The context of the question itself; None where nothing was searched for."""
        return self.contexts[0] if self.contexts else None

    @cached_property
    def usage(self) -> Usage:
        """The tokens of all calls; marked where any of them is an estimate."""
        total = Usage()
        for call in self.calls:
            total = total.plus(call.usage)
        return total

    @property
    def failed_calls(self) -> tuple[Call, ...]:
        """The calls that failed and were skipped."""
        return tuple(call for call in self.calls if call.error is not None)

    @cached_property
    def citations(self) -> tuple[Citation, ...]:
        """The markers in the text, each with the passage that it leads to; only with `cite=True`.

        Without it no passage has a number, and a [1] in an answer comes from the text that was read.
        """
        return citations_in(self.text, self.passages) if self.cited else ()

    def explain(self) -> str:
        """A report in plain text: calls, tokens, answers, citations, and how each context came to be."""
        from oprag.methods.answer_report import explain

        return explain(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything but framework objects, as values that JSON can hold."""
        from oprag.methods.answer_report import to_dict

        return to_dict(self)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        usage = self.usage
        about = "about " if usage.estimated else ""
        return (
            f"Answer({quoted(self.text)}, method={self.method!r}, {counted(len(self.calls), 'call')}, "
            f"{about}{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out, "
            f"{counted(len(self.contexts), 'context')}, {counted(len(self.notes), 'note')})"
        )

    def _repr_html_(self) -> str:
        from oprag.methods.answer_report import answer_html

        return answer_html(self)
