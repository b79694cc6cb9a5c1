"""An answer's report, in plain text and as values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from oprag.explain import context_html
from oprag.masking import masked_error, without_keys
from oprag.report import passage_to_dict
from oprag.svg import escaped, shortened
from oprag.table import printable, table

if TYPE_CHECKING:
    from oprag.methods.answer import Answer
    from oprag.methods.completion import Usage

__all__ = ["answer_html", "explain", "to_dict"]

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
