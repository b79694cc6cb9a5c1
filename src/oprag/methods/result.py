"""What a method gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from oprag.context import Context
from oprag.stitch import Passage

__all__ = ["PassageAnswer", "Result", "Route", "nothing_found"]

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
