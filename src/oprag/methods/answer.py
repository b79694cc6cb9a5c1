"""From a marker in an answer to the passage that it names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from oprag.assembly.stitch import Passage
from oprag.chunk import Span, counted, quoted
from oprag.context import Context
from oprag.context_report import context_html, passage_to_dict
from oprag.masking import masked_error, without_keys
from oprag.methods.model_calls import Call, Usage
from oprag.positions.ladder import page_of
from oprag.svg import escaped, shortened
from oprag.table import printable, table

if TYPE_CHECKING:
    from oprag.methods.model_calls import Usage

__all__ = [
    "Answer",
    "Citation",
    "PassageAnswer",
    "Result",
    "Route",
    "answer_html",
    "citations_in",
    "explain",
    "nothing_found",
    "renumbered",
    "to_dict",
]

# [1], and [1, 3] or [1; 3], which models write unasked.
_MARKER = re.compile(r"\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]")


class Citation(NamedTuple):
    """One number of a marker in an answer.

    Attributes:
        number: The number, as it stands in the marker.
        start: Where the marker begins in the answer.
        end: Where it ends.
        passage: The passage that had this number in the prompt.
        source: Its source.
        page: Its page, by the printed label where there is one; None where it is not known, or where the passage is on
            several pages.
        span: Where it stands in the source, from its first to its last character; None where that is not known, or
            where it counts from several pages.
    """

    number: int
    start: int
    end: int
    passage: Passage
    source: str | None
    page: str | int | None
    span: Span | None

    def to_dict(self) -> dict[str, Any]:
        """The citation as values that JSON can hold, with the text of the passage and the ids of its chunks."""
        return {
            "number": self.number,
            "start": self.start,
            "end": self.end,
            "source": self.source,
            "page": self.page,
            "span": None if self.span is None else self.span._asdict(),
            "text": self.passage.text,
            "ids": [chunk.id for chunk in self.passage.chunks if chunk.id is not None],
        }


def citations_in(text: str, passages: Sequence[Passage]) -> tuple[Citation, ...]:
    """The markers in a text that lead to one of these passages; [1] is the first. Other numbers lead nowhere."""
    return tuple(
        _citation(int(number), marker, passages[int(number) - 1])
        for marker in _MARKER.finditer(text)
        for number in re.findall(r"\d+", marker[1])
        if 1 <= int(number) <= len(passages)
    )


def renumbered(text: str, offset: int, most: int) -> str:
    """The text with the numbers of its markers raised, so that it can stand beside a text with passages of its own.

    A number that leads to no passage stays, but in other brackets: raised or not, it would lead to one of another text.

    Args:
        text: The text.
        offset: How many numbered passages stand before those of this text.
        most: How many passages this text has.
    """

    def raised(marker: re.Match[str]) -> str:
        numbers = [int(number) for number in re.findall(r"\d+", marker[0])]
        if not all(1 <= number <= most for number in numbers):
            return f"({marker[1]})"
        return f"[{', '.join(str(number + offset) for number in numbers)}]"

    return _MARKER.sub(raised, text)


def _citation(number: int, marker: re.Match[str], passage: Passage) -> Citation:
    pages = {page_of(chunk) for chunk in passage.chunks}
    if pages == {None}:
        pages = {span.page for span in passage.spans}
    page = pages.pop() if len(pages) == 1 else None
    return Citation(number, marker.start(), marker.end(), passage, passage.source, page, _span(passage))


def _span(passage: Passage) -> Span | None:
    spans = passage.spans
    if not spans or any(span.page != spans[0].page for span in spans):
        return None
    if len(passage.chunks) == 1 and len(passage.text) > spans[0].end - spans[0].start:
        # The text was replaced by a longer one, such as the window around a sentence.
        return None
    return Span(spans[0].start, spans[-1].end, spans[0].page)


Route = Literal["rag", "long_context"]


@dataclass(frozen=True)
class PassageAnswer:
    """What one passage, or one question of several, answered.

    Attributes:
        text: The answer.
        passage: The passage, in `map_rerank`.
        question: The question, in `step_down` and `reciprocal`.
        confidence: The model's own confidence, from 0 to 100; None where it could not be read.
        cosine: The cosine of question and answer, where it was asked for.
        chosen: Whether it is the answer, or went into it.
    """

    text: str
    passage: Passage | None = None
    question: str | None = None
    confidence: float | None = None
    cosine: float | None = None
    chosen: bool = False


@dataclass(frozen=True)
class Result:
    """What the body of a method returns.

    Attributes:
        text: The answer.
        contexts: The contexts that it was made from; empty ones as well.
        parsed: The model's object, where it gives objects.
        passages: The numbered passages that the model read: a marker [1] in the text leads to the first.
        answers: The answers that the answer was chosen or made from.
        route: Which way `self_route` went.
        notes: What a reader of the answer should know, such as that no confidence could be read.
        empty: Whether there was nothing to read, so that the text is no answer of the model.
    """

    text: str
    contexts: tuple[Context, ...]
    parsed: Any = field(default=None, compare=False)
    passages: tuple[Passage, ...] = ()
    answers: tuple[PassageAnswer, ...] = ()
    route: Route | None = None
    notes: tuple[str, ...] = ()
    empty: bool = False

    @property
    def found(self) -> bool:
        """Whether anything was retrieved."""
        return not self.empty and any(context.kept for context in self.contexts)


def nothing_found(empty_answer: str, *contexts: Context) -> Result:
    """The result of every method when nothing was retrieved; no call is made for it."""
    return Result(empty_answer, contexts, notes=(_why_nothing(contexts),), empty=True)


def _why_nothing(contexts: Sequence[Context]) -> str:
    if any(context.kept for context in contexts):
        return "what was retrieved has no text"
    reasons = Counter(drop.reason for context in contexts for drop in context.dropped)
    if not reasons:
        return "nothing was retrieved"
    by = ", ".join(f"{count} by {reason}" for reason, count in reasons.most_common())
    return f"all chunks that were retrieved were left out: {by}"


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
        return explain(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything but framework objects, as values that JSON can hold."""
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

        return answer_html(self)


_WIDTH = 60
# What notebooks show at most: characters of a text, and notes.
_TEXT_IN_HTML = 4_000
_NOTES_IN_HTML = 5


def explain(answer: Answer) -> str:
    """The report behind `Answer.explain`."""
    return "\n".join(_lines(answer))


def _lines(answer: Answer) -> Iterator[str]:
    yield f"question: {_line(answer.question)}"
    if answer.standalone_question is not None:
        yield f"asked as: {_line(answer.standalone_question)}"
    yield f"answer: {_line(answer.text)}"
    route = f", route {answer.route}" if answer.route else ""
    plural = "" if len(answer.calls) == 1 else "s"
    spent = f"{len(answer.calls)} call{plural}, {_tokens(answer.usage)}, {answer.seconds:.2f} s"
    yield f"method {answer.method}{route}: {spent}"
    for note in answer.notes:
        yield f"note: {_line(without_keys(note))}"
    if answer.calls:
        yield from ["", "calls"]
        yield from table(
            ["step", "tokens in", "tokens out", "seconds", "reply"],
            [
                [
                    call.step,
                    f"{call.usage.input_tokens:,}",
                    f"{call.usage.output_tokens:,}",
                    f"{call.seconds:.2f}",
                    _short(call.reply) if call.error is None else f"failed: {masked_error(call.error)}",
                ]
                for call in answer.calls
            ],
        )
    if answer.answers:
        yield from ["", "answers, chosen ones marked"]
        yield from table(
            ["", "confidence", "cosine", "from", "answer"],
            [
                [
                    "*" if one.chosen else "",
                    "-" if one.confidence is None else f"{one.confidence:g}",
                    "-" if one.cosine is None else f"{one.cosine:.3f}",
                    one.question or (one.passage.source if one.passage is not None else None) or "-",
                    _short(one.text),
                ]
                for one in answer.answers
            ],
        )
    if answer.citations:
        yield from ["", "citations"]
        yield from table(
            ["marker", "source", "page", "characters"],
            [
                [
                    f"[{one.number}]",
                    one.source or "(unknown)",
                    "-" if one.page is None else str(one.page),
                    "-" if one.span is None else f"{one.span.start:,}–{one.span.end:,}",
                ]
                for one in answer.citations
            ],
        )
    for number, context in enumerate(answer.contexts, 1):
        yield from ["", f"context {number} of {len(answer.contexts)}" if len(answer.contexts) > 1 else "context"]
        yield context.explain()


def _tokens(usage: Usage) -> str:
    estimated = " (estimated)" if usage.estimated else ""
    return f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out{estimated}"


def _line(text: str) -> str:
    return printable(" ".join(text.split()))


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _WIDTH else f"{words[: _WIDTH - 1]}…"


def answer_html(answer: Answer) -> str:
    """Question, answer, notes and the first context for notebooks, long texts cut."""
    texts = [f"question: {answer.question}", answer.text, *(f"note: {note}" for note in answer.notes[:_NOTES_IN_HTML])]
    paragraphs = [f'<p style="white-space: pre-wrap">{escaped(shortened(text, _TEXT_IN_HTML))}</p>' for text in texts]
    context = "" if answer.context is None else context_html(answer.context)
    return f"<div>{''.join(paragraphs)}<p>{escaped(repr(answer))}</p>{context}</div>"


def to_dict(answer: Answer) -> dict[str, Any]:
    """The values behind `Answer.to_dict`."""
    return {
        "question": answer.question,
        "standalone_question": answer.standalone_question,
        "text": answer.text,
        "method": answer.method,
        "route": answer.route,
        "notes": list(answer.notes),
        "seconds": answer.seconds,
        "usage": answer.usage._asdict(),
        "calls": [
            {
                "step": call.step,
                "messages": [message._asdict() for message in call.prompt.messages],
                "reply": call.reply,
                "usage": call.usage._asdict(),
                "seconds": call.seconds,
                "finish_reason": call.completion.finish_reason,
                "error": None if call.error is None else masked_error(call.error),
            }
            for call in answer.calls
        ],
        "answers": [
            {
                "text": one.text,
                "question": one.question,
                "passage": None if one.passage is None else passage_to_dict(one.passage),
                "confidence": one.confidence,
                "cosine": one.cosine,
                "chosen": one.chosen,
            }
            for one in answer.answers
        ],
        "citations": [one.to_dict() for one in answer.citations],
        "contexts": [context.to_dict() for context in answer.contexts],
    }
