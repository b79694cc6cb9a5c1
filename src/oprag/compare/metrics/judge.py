"""Judges: metrics that ask a model to grade an answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from oprag.compare.db.records import JUDGED, key_of
from oprag.compare.metrics.registry import Metric, ScoredAnswer
from oprag.compare.validation import Amount, StrictModel, Text, pydantic
from oprag.errors import OptionError
from oprag.methods.prompts import Message, Prompt, TextTemplate
from oprag.methods.replies import without_reasoning

__all__ = ["Judge", "JudgeMetric", "judge_metric"]

_PROMPT = """\
Is the answer to the question right? Any of the gold answers is right.

Question: {question}

Gold answers:
{answers}

Answer:
{answer}

Grade it C if it says what a gold answer says, P if it says a part of that, else I."""
_FORM = "Give your reason in one sentence. Then write a line with nothing but GRADE: and one of {grades}."
_GRADE = re.compile(r"GRADE:[\s*]*(\w+)", re.IGNORECASE)
_FIELDS = ("question", "answers", "answer", "context")


def _template(given: Any) -> str:
    fields = TextTemplate(given).fields
    if "answer" not in fields or not fields <= {*_FIELDS}:
        raise OptionError(
            "it must contain {answer}, and no fields other than {question}, {answers} and {context}", given
        )
    return str(given)


class Judge(StrictModel):
    """A metric that asks a model to grade an answer; its calls are planned, limited, shared and cached like all others.

    The prompt describes the criterion and the grades; the required reply format is appended to it. If a reply has no
    grade, the answer gets a note and no score. A judge with {context} sees the chunks in context order.

    Attributes:
        model: Name of the model.
        prompt: Prompt with {answer} and, optionally, {question}, {answers} (gold answers, one per line) and {context}.
            The default compares the answer with the gold answers.
        grades: Score of each grade.
    """

    model: Text
    prompt: Annotated[str, pydantic.PlainValidator(_template)] = _PROMPT
    grades: Mapping[str, Amount] = pydantic.Field(default_factory=lambda: {"C": 1.0, "P": 0.5, "I": 0.0})

    def model_post_init(self, context: Any, /) -> None:
        """Reject grades that are not single words, or differ only in case."""
        super().model_post_init(context)
        if len({name.casefold() for name in self.grades if name.isidentifier()}) != len(self.grades) or not self.grades:
            raise OptionError(
                f"grades must be distinct single words, ignoring case, got {', '.join(self.grades)}", self.grades
            )


@dataclass(frozen=True, kw_only=True)
class JudgeMetric(Metric):
    """Metric of a judge; its scores come from model calls, which are part of the work on an answer."""

    judge: Judge

    def ask(self, given: ScoredAnswer) -> Prompt | None:
        """Prompt for an answer; None if the prompt needs a context and the answer has none."""
        template = TextTemplate(self.judge.prompt)
        if "context" in template.fields and given.context is None:
            return None
        (message,) = template.messages(
            {
                "question": given.question.text,
                "answers": "\n".join(given.question.answers),
                "answer": given.text,
                "context": "" if given.context is None else given.context.text,
            }
        )
        form = _FORM.format(grades=", ".join(self.judge.grades))
        return Prompt((Message("user", f"{message.content}\n\n{form}"),), f"{JUDGED}{self.name}")

    def read(self, reply: str) -> float:
        """Parse the score from a reply.

        Raises:
            OptionError: The reply has no grade.
        """
        scores = {name.casefold(): score for name, score in self.judge.grades.items()}
        # Use the last grade: a model may quote an answer that contains a grade.
        for found in reversed(_GRADE.findall(without_reasoning(reply))):
            if found.casefold() in scores:
                return scores[found.casefold()]
        raise OptionError(f"the judge's reply has none of the grades {', '.join(self.judge.grades)}", reply)


def judge_metric(name: str, judge: Judge, model: str) -> JudgeMetric:
    """Create the metric of a judge, given the identity of its model."""
    needs_gold = "answers" in TextTemplate(judge.prompt).fields
    return JudgeMetric(
        name=name,
        score=lambda _: None,
        needs="gold answers" if needs_gold else "",
        has=lambda question: bool(question.answers) or not needs_gold,
        rule=key_of("judge", model, judge.prompt, judge.grades),
        judge=judge,
    )
