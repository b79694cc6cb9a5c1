"""The answer to a question: what it says, the passages that it cites, the calls that it took, and its report."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

from oprag.assembly.stitch import Passage
from oprag.chunk import Span, counted, quoted
from oprag.context import Context
from oprag.context_report import passage_to_dict
from oprag.masking import masked_error, without_keys
from oprag.methods.model_calls import Call, Usage
from oprag.positions.ladder import page_of
from oprag.text_table import escaped, one_line, printable, shortened, table

__all__ = [
    "Answer",
    "Citation",
    "PassageAnswer",
    "Result",
    "Route",
    "citation_of",
    "citations_in",
    "markers_in",
    "nothing_found",
    "renumbered",
    "without_markers",
]

# [1], and [1, 3], [1; 3], [1-3] or [1, 2 and 4], which models write unasked.
_MARKER = re.compile(r"\[(\d{1,6}(?:\s*(?:[,;\-–—]|,?\s?(?:and|&)\s)\s*\d{1,6})*)\]")
_RANGE = re.compile(r"(\d+)(?:\s*[-–—]\s*(\d+))?")
_LONGEST_RANGE = 100  # numbers
_REPLY_WIDTH = 60  # characters of a reply in a line of the report
# Limits of what notebooks show.
_CHARACTERS_IN_HTML = 4_000
_NOTES_IN_HTML = 5


class Citation(NamedTuple):
    """One number of a marker in an answer.

    Attributes:
        number: The number in the marker.
        start: Start offset of the marker in the answer.
        end: End offset of the marker (exclusive).
        passage: The passage that had this number in the prompt.
        source: The source of the passage.
        page: The page of the passage, by its printed label if it has one; None if unknown, or if the passage covers
            several pages.
        span: The offsets of the passage in its source, from its first to its last character; None if unknown, or if
            they count from several pages.
    """

    number: int
    start: int
    end: int
    passage: Passage
    source: str | None
    page: str | int | None
    span: Span | None

    def to_dict(self) -> dict[str, Any]:
        """The citation as JSON-serializable values, with the text of the passage and the ids of its chunks."""
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
    """The citations of these passages in a text; [1] cites the first. Numbers without a passage are ignored."""
    return tuple(
        citation_of(number, marker, passages[number - 1])
        for marker, numbers in markers_in(text)
        for number in numbers
        if 1 <= number <= len(passages)
    )


def renumbered(text: str, offset: int, passages: int) -> str:
    """The text with the numbers of its markers raised, so that it can follow a text with passages of its own.

    A marker with a number that cites no passage gets other brackets: raised or not, it would cite one of another text.
    """

    def raised(marker: re.Match[str]) -> str:
        numbers = _numbers(marker)
        if not all(1 <= number <= passages for number in numbers):
            return f"({marker[1]})"
        return f"[{', '.join(str(number + offset) for number in numbers)}]"

    return _MARKER.sub(raised, text)


def _numbers(marker: re.Match[str]) -> list[int]:
    """The numbers of a marker, with those inside its ranges."""
    numbers: list[int] = []
    for first, last in _RANGE.findall(marker[1]):
        start, end = int(first), int(last or first)
        # Such as the years [1914-1918] backward, or far apart.
        whole = start <= end < start + _LONGEST_RANGE
        numbers += range(start, end + 1) if whole else [start, end]
    return numbers


def markers_in(text: str) -> Iterator[tuple[re.Match[str], list[int]]]:
    """Each marker in a text, with its numbers."""
    for marker in _MARKER.finditer(text):
        yield marker, _numbers(marker)


def without_markers(text: str) -> str:
    """The text with a space inside the brackets of what would be read as a marker."""
    return _MARKER.sub(r"[ \1 ]", text) if "[" in text else text


def citation_of(number: int, marker: re.Match[str], passage: Passage) -> Citation:
    """The citation of a passage by one number of a marker."""
    pages = {page_of(chunk) for chunk in passage.chunks}
    if pages == {None}:
        pages = {span.page for span in passage.spans}
    page = pages.pop() if len(pages) == 1 else None
    return Citation(number, marker.start(), marker.end(), passage, passage.source, page, _cited_span(passage))


def _cited_span(passage: Passage) -> Span | None:
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
    """The answer from one passage, or to one of several questions.

    Attributes:
        text: The answer.
        passage: The passage, in `map_rerank`.
        question: The question, in `step_down` and `reciprocal`.
        confidence: The model's own confidence, from 0 to 100; None if it could not be read.
        cosine: Cosine similarity of question and answer, if it was needed.
        chosen: Whether it is the answer, or a part of it.
    """

    text: str
    passage: Passage | None = None
    question: str | None = None
    confidence: float | None = None
    cosine: float | None = None
    chosen: bool = False


@dataclass(frozen=True)
class Result:
    """The return value of a method.

    Attributes:
        text: The answer.
        contexts: The contexts that it was made from, including empty ones.
        parsed: The model's object, for models that return objects (structured output).
        passages: The numbered passages that the model read: a marker [1] in the text cites the first.
        answers: The answers that it was chosen or made from.
        route: The route of `self_route`.
        notes: Remarks for readers of the answer, such as that no confidence could be read.
        empty: Whether there was nothing to read, so that the text does not come from the model.
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
    """The result of every method if nothing was retrieved, without a model call.

    Args:
        empty_answer: The text of the answer.
        contexts: The contexts; a note says why they are empty.
    """
    if any(context.kept for context in contexts):
        note = "what was retrieved has no text"
    elif reasons := Counter(drop.reason for context in contexts for drop in context.dropped):
        by = ", ".join(f"{count} by {reason}" for reason, count in reasons.most_common())
        note = f"all chunks that were retrieved were left out: {by}"
    else:
        note = "nothing was retrieved"
    return Result(empty_answer, contexts, notes=(note,), empty=True)


@dataclass(frozen=True)
class Answer:
    """The answer to a question.

    Its repr is one line; notebooks show question, answer, notes and context. `print(answer)` prints the text alone, and
    `explain()` says how the answer was made.

    Attributes:
        question: The question, as it was asked.
        text: The answer; JSON for models that return objects.
        method: The method that made it.
        contexts: The retrieved contexts, the context of the question first.
        calls: All model calls, in the sequence of the method.
        parsed: The model's object, for models that return objects (structured output).
        standalone_question: The standalone question that a follow-up was rewritten to; None without a conversation.
        route: The route of `self_route`: "rag" or "long_context".
        answers: The answers that it was chosen or made from: those of the passages with their confidences in
            `map_rerank`, those to the other questions in `step_down` and `reciprocal`.
        passages: The passages that the model read, as they are numbered with `cite=True`.
        notes: Remarks for readers, such as that a source was cut or a call was skipped.
        seconds: Duration in seconds, including retrieval.
        cited: Whether the passages were numbered, so that markers in the text cite them.
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
        """The context of the question itself; None if nothing was searched for."""
        return self.contexts[0] if self.contexts else None

    @cached_property
    def usage(self) -> Usage:
        """The tokens of all calls; marked as estimated if any of them is."""
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
        """The markers in the text, each with the passage that it cites; only with `cite=True`.

        Without it no passage has a number, and a [1] in an answer comes from the text that was read.
        """
        return citations_in(self.text, self.passages) if self.cited else ()

    def explain(self) -> str:
        """A report in plain text: calls, tokens, answers, citations, and how each context was made."""
        return "\n".join(_report(self))

    def to_dict(self) -> dict[str, Any]:
        """Everything but framework objects, as JSON-serializable values."""
        return {
            "question": self.question,
            "standalone_question": self.standalone_question,
            "text": self.text,
            "method": self.method,
            "route": self.route,
            "notes": list(self.notes),
            "seconds": self.seconds,
            "usage": self.usage._asdict(),
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
                for call in self.calls
            ],
            "answers": [
                {
                    "text": answer.text,
                    "question": answer.question,
                    "passage": None if answer.passage is None else passage_to_dict(answer.passage),
                    "confidence": answer.confidence,
                    "cosine": answer.cosine,
                    "chosen": answer.chosen,
                }
                for answer in self.answers
            ],
            "citations": [citation.to_dict() for citation in self.citations],
            "contexts": [context.to_dict() for context in self.contexts],
        }

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
        notes = [f"note: {note}" for note in self.notes[:_NOTES_IN_HTML]]
        paragraphs = [
            f'<p style="white-space: pre-wrap">{escaped(shortened(text, _CHARACTERS_IN_HTML))}</p>'
            for text in (f"question: {self.question}", self.text, *notes)
        ]
        context = "" if self.context is None else self.context._repr_html_()
        return f"<div>{''.join(paragraphs)}<p>{escaped(repr(self))}</p>{context}</div>"


def _report(answer: Answer) -> Iterator[str]:
    """The lines of `Answer.explain`."""
    yield f"question: {printable(one_line(answer.question))}"
    if answer.standalone_question is not None:
        yield f"asked as: {printable(one_line(answer.standalone_question))}"
    yield f"answer: {printable(one_line(answer.text))}"
    route = f", route {answer.route}" if answer.route else ""
    usage = answer.usage
    estimated = " (estimated)" if usage.estimated else ""
    tokens = f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out{estimated}"
    yield f"method {answer.method}{route}: {counted(len(answer.calls), 'call')}, {tokens}, {answer.seconds:.2f} s"
    for note in answer.notes:
        yield f"note: {printable(one_line(without_keys(note)))}"
    if answer.calls:
        yield from ["", "calls", *table(["step", "tokens in", "tokens out", "seconds", "reply"], _call_rows(answer))]
    if answer.answers:
        yield from ["", "answers, chosen ones marked"]
        yield from table(["", "confidence", "cosine", "from", "answer"], _answer_rows(answer))
    if answer.citations:
        yield from ["", "citations", *table(["marker", "source", "page", "characters"], _citation_rows(answer))]
    for number, context in enumerate(answer.contexts, 1):
        yield from ["", f"context {number} of {len(answer.contexts)}" if len(answer.contexts) > 1 else "context"]
        yield context.explain()


def _call_rows(answer: Answer) -> Iterator[list[str]]:
    for call in answer.calls:
        reply = shortened(one_line(call.reply), _REPLY_WIDTH)
        yield [
            call.step,
            f"{call.usage.input_tokens:,}",
            f"{call.usage.output_tokens:,}",
            f"{call.seconds:.2f}",
            reply if call.error is None else f"failed: {masked_error(call.error)}",
        ]


def _answer_rows(answer: Answer) -> Iterator[list[str]]:
    for part in answer.answers:
        source = None if part.passage is None else part.passage.source
        yield [
            "*" if part.chosen else "",
            "-" if part.confidence is None else f"{part.confidence:g}",
            "-" if part.cosine is None else f"{part.cosine:.3f}",
            part.question or source or "-",
            shortened(one_line(part.text), _REPLY_WIDTH),
        ]


def _citation_rows(answer: Answer) -> Iterator[list[str]]:
    for citation in answer.citations:
        yield [
            f"[{citation.number}]",
            citation.source or "(unknown)",
            "-" if citation.page is None else str(citation.page),
            "-" if citation.span is None else f"{citation.span.start:,}–{citation.span.end:,}",
        ]
