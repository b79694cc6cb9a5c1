"""The answer to a question, with its citations, model calls and report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

from oprag._internal.masking import masked_error, shown
from oprag._internal.text_table import one_line, printable, shortened, table
from oprag._internal.tokens import TokenCounter, approximate_tokens, count
from oprag.chunk import Passage, counted, quoted
from oprag.context import Context
from oprag.methods.citations import Citation, cited_in
from oprag.methods.prompts import Prompt
from oprag.pipeline.context_report import passage_to_dict

__all__ = [
    "Answer",
    "Call",
    "Completion",
    "PassageAnswer",
    "Result",
    "Route",
    "Usage",
    "nothing_found",
    "part",
    "reported_reason",
    "reported_usage",
]

_REPLY_WIDTH = 60  # characters of a reply in a line of the report
_NAME_WIDTH = 80  # characters of a source name, page label or generated question
_MAX_LINE_LENGTH = 4_000  # characters of a question or note

# Names of token counts, by provider and framework.
_INPUT = ("input_tokens", "prompt_tokens", "prompt_token_count", "prompt_eval_count")
_OUTPUT = ("output_tokens", "completion_tokens", "candidates_token_count", "eval_count")
_DETAILS = ("input_token_details", "prompt_tokens_details", "input_tokens_details")
_CACHED = ("cache_read", "cached_tokens")
# Not part of Anthropic's input tokens, or of Gemini's output tokens.
_ANTHROPIC_CACHE = ("cache_read_input_tokens", "cache_creation_input_tokens")
_GEMINI_THOUGHTS = ("thoughts_token_count",)
# Names of the finish reason.
_REASONS = ("finish_reason", "stop_reason", "done_reason", "finishReason", "stopReason", "reason")

Route = Literal["rag", "long_context"]


class Usage(NamedTuple):
    """Token usage of one or more calls.

    Attributes:
        input_tokens: Tokens of the prompts.
        output_tokens: Tokens of the replies.
        cached_tokens: The part of `input_tokens` that was read from the provider's prompt cache.
        estimated: Whether any tokens were counted by oprag, because the model did not report them.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    estimated: bool = False

    def plus(self, other: Usage) -> Usage:
        """Add another usage.

        Args:
            other: The other usage.
        """
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.estimated or other.estimated,
        )


def reported_usage(*holders: Any) -> Usage | None:
    """The token usage that a model reported, in the first of these parts of its reply that has it; None without."""
    for counts in filter(None, holders):
        input_tokens, output_tokens = _count_in(counts, _INPUT), _count_in(counts, _OUTPUT)
        if input_tokens is not None and output_tokens is not None:
            details = next((found for name in _DETAILS if (found := part(counts, name))), None)
            cached = _count_in(details, _CACHED) or 0
            if _count_in(counts, _INPUT[:1]) is not None:
                read, written = (_count_in(counts, (name,)) or 0 for name in _ANTHROPIC_CACHE)
                input_tokens, cached = input_tokens + read + written, cached or read
            output_tokens += _count_in(counts, _GEMINI_THOUGHTS) or 0
            return Usage(input_tokens, output_tokens, cached)
    return None


def reported_reason(*holders: Any) -> str | None:
    """The finish reason that a model reported, in the first of these parts of its reply that has one."""
    reasons = (part(holder, name) for holder in holders if holder for name in _REASONS)
    return next((reason for reason in reasons if isinstance(reason, str) and reason), None)


def part(holder: Any, name: str) -> Any:
    """An item of a mapping or an attribute of an object; None if missing."""
    known = type(holder) is dict or isinstance(holder, Mapping)
    return holder.get(name) if known else getattr(holder, name, None)


def _count_in(holder: Any, names: tuple[str, ...]) -> int | None:
    return next((value for name in names if isinstance(value := part(holder, name), int)), None)


@dataclass(frozen=True)
class Completion:
    """A model's reply to one prompt.

    Attributes:
        text: The reply; JSON for models that return objects; empty if the call failed.
        parsed: The object, for models that return objects (structured output).
        error: The exception of a failed call, or None.
        usage: Token usage as reported by the model, or None.
        seconds: Duration of the call in seconds.
        finish_reason: The provider's finish reason, such as "stop" or "length".
        streamed: Whether part of it was already streamed to the user.
    """

    text: str = ""
    parsed: Any = field(default=None, compare=False)
    error: Exception | None = None
    usage: Usage | None = None
    seconds: float = field(default=0.0, compare=False)
    finish_reason: str | None = None
    streamed: bool = False


@dataclass(frozen=True)
class Call:
    """The record of a model call in an answer.

    Attributes:
        prompt: The prompt.
        completion: The reply.
        count_tokens: The token counter for estimates.
    """

    prompt: Prompt
    completion: Completion
    count_tokens: TokenCounter = field(default=approximate_tokens, compare=False, repr=False)

    @cached_property
    def usage(self) -> Usage:
        """Token usage as reported by the model, else an estimate (`estimated`), counted on first access.

        Zero for a failed call.

        Raises:
            TokenizerError: `count_tokens` returned no usable count.
        """
        if self.completion.usage is not None:
            return self.completion.usage
        if self.error is not None:
            return Usage()
        input_tokens, output_tokens = (count(text, self.count_tokens) for text in (self.prompt.text, self.reply))
        return Usage(input_tokens, output_tokens, estimated=True)

    @property
    def step(self) -> str:
        """The step of the method that made the call."""
        return self.prompt.step

    def __repr__(self) -> str:
        tokens = f"{self.usage.input_tokens:,} tokens in, {self.usage.output_tokens:,} out"
        failed = "" if self.error is None else f", {type(self.error).__name__}"
        return f"Call({self.step!r}, {tokens}, {self.seconds:.2f} s, {quoted(self.reply)}{failed})"

    @property
    def reply(self) -> str:
        """The text of the reply."""
        return self.completion.text

    @property
    def seconds(self) -> float:
        """Duration of the call in seconds."""
        return self.completion.seconds

    @property
    def error(self) -> Exception | None:
        """The exception of a failed call, or None."""
        return self.completion.error


@dataclass(frozen=True)
class PassageAnswer:
    """The answer from one passage, or to one of several questions.

    Attributes:
        text: The answer.
        passage: The passage, in `map_rerank`.
        question: The question, in `step_down` and `reciprocal`.
        confidence: The confidence stated by the model, from 0 to 100; None if it could not be parsed.
        cosine: Cosine similarity of question and answer, if computed.
        chosen: Whether the final answer is this answer, or was made from it.
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
        contexts: The retrieved contexts, including empty ones.
        parsed: The model's object, for models that return objects (structured output).
        passages: The numbered passages that the model read: a marker [1] in the text cites the first.
        answers: The partial or candidate answers that the answer was made or chosen from.
        route: The route of `self_route`.
        notes: Notes for the user, such as that no confidence could be parsed.
        empty: Whether nothing was retrieved, so that the text does not come from the model.
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
        """Whether the answer was made from retrieved chunks."""
        return not self.empty and any(context.kept for context in self.contexts)


def nothing_found(empty_answer: str, *contexts: Context) -> Result:
    """Create the result for a question without retrieved text; no model call is needed.

    Args:
        empty_answer: The text of the answer.
        contexts: The contexts; a note gives the reason why they are empty.
    """
    if any(context.kept for context in contexts):
        note = "the retrieved chunks have no text"
    elif reasons := Counter(drop.reason for context in contexts for drop in context.dropped):
        by = ", ".join(f"{count} by {reason}" for reason, count in reasons.most_common())
        note = f"all retrieved chunks were dropped: {by}"
    else:
        note = "nothing was retrieved"
    return Result(empty_answer, contexts, notes=(note,), empty=True)


@dataclass(frozen=True)
class Answer:
    """The answer to a question.

    The repr is one line, `print(answer)` prints only the text, and `explain()` returns a full report.

    Attributes:
        question: The question, as it was asked.
        text: The answer; JSON for models that return objects.
        method: Name of the method.
        contexts: The retrieved contexts, the context of the question first.
        calls: All model calls, in the order in which the method requested them.
        parsed: The model's object, for models that return objects (structured output).
        standalone_question: The standalone question that a follow-up was rewritten to; None if nothing was rewritten.
        route: The route of `self_route`: "rag" or "long_context".
        answers: The answers that the final answer was chosen or made from: the answer from each passage, with its
            confidence, in `map_rerank`; the answer to each generated question in `step_down` and `reciprocal`.
        passages: The passages that the model read, in the order of their numbers with `cite=True`.
        notes: Notes for the user, such as that a source was truncated or a call was skipped.
        seconds: Duration in seconds, including retrieval and, in a stream, the caller's time between pieces.
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
        """The context of the question itself; None without retrieval."""
        return self.contexts[0] if self.contexts else None

    @cached_property
    def usage(self) -> Usage:
        """Token usage of all calls; estimated if that of any call is."""
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
        """The citations in the text, with their passages; empty without `cite=True`.

        Without `cite=True`, passages are not numbered, and a [1] in the answer comes from the retrieved text.
        """
        if not self.cited:
            return ()
        passages = dict(enumerate(self.passages, 1))
        citations, _ = cited_in(self.text, passages.get)
        return tuple(citations)

    def explain(self) -> str:
        """Plain-text report: calls, tokens, answers, citations, and the report of each context."""
        return "\n".join(_report(self))

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON-serializable values, without framework objects."""
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
                {**vars(answer), "passage": None if answer.passage is None else passage_to_dict(answer.passage)}
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


def _report(answer: Answer) -> Iterator[str]:
    """The lines of `Answer.explain`."""
    yield f"question: {_line(answer.question)}"
    if answer.standalone_question is not None:
        yield f"rewritten as: {_line(answer.standalone_question)}"
    yield f"answer: {printable(one_line(answer.text))}"
    route = f", route {answer.route}" if answer.route else ""
    usage = answer.usage
    estimated = " (estimated)" if usage.estimated else ""
    tokens = f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out{estimated}"
    yield f"method {answer.method}{route}: {counted(len(answer.calls), 'call')}, {tokens}, {answer.seconds:.2f} s"
    for note in answer.notes:
        yield f"note: {_line(note)}"
    if answer.calls:
        yield from ["", "calls", *table(["step", "tokens in", "tokens out", "seconds", "reply"], _call_rows(answer))]
    if answer.answers:
        yield from ["", "answers (* = chosen)"]
        yield from table(["", "confidence", "cosine", "from", "answer"], _answer_rows(answer))
    if answer.citations:
        yield from [
            "",
            "citations",
            *table(["marker", "source", "page", "characters", "quote"], _citation_rows(answer)),
        ]
    for number, context in enumerate(answer.contexts, 1):
        yield from ["", f"context {number} of {len(answer.contexts)}" if len(answer.contexts) > 1 else "context"]
        yield context.explain()


def _line(text: str) -> str:
    return printable(one_line(shown(text, _MAX_LINE_LENGTH, end=False)))


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
        source = "-" if part.passage is None else shown(part.passage.source or "-", _NAME_WIDTH)
        yield [
            "*" if part.chosen else "",
            "-" if part.confidence is None else f"{part.confidence:g}",
            "-" if part.cosine is None else f"{part.cosine:.3f}",
            shown(part.question, _NAME_WIDTH, end=False) if part.question else source,
            shortened(one_line(part.text), _REPLY_WIDTH),
        ]


def _citation_rows(answer: Answer) -> Iterator[list[str]]:
    for citation in answer.citations:
        yield [
            f"[{citation.number}]",
            shown(citation.source or "(unknown)", _NAME_WIDTH),
            "-" if citation.page is None else shown(str(citation.page), _NAME_WIDTH),
            "-" if citation.span is None else f"{citation.span.start:,}–{citation.span.end:,}",
            "-" if citation.quote is None else "not in the passage" if citation.misquoted else "found",
        ]
