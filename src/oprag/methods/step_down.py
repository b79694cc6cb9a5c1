"""The method `step_down`: answer more concrete questions, and combine their answers."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from oprag.chunk import Passage
from oprag.context import Context
from oprag.methods.answer import PassageAnswer, Result, nothing_found
from oprag.methods.citations import renumbered
from oprag.methods.prompts import Prompt
from oprag.methods.registry import find_method
from oprag.methods.replies import questions_in, reply_text, without_reasoning
from oprag.methods.run import Body, Generate, Request, Retrieve, Together
from oprag.methods.task import Task, combined

__all__ = ["AnsweredVariants", "aggregation", "answered_variants", "no_answer", "step_down"]


def step_down(task: Task) -> Body:
    """Generate `variants` more concrete questions, answer each with `inner_method`, and combine the answers.

    After Şakar and Emekci (2024, doi 10.1017/nlp.2024.53).

    Calls: v + 2 for v variants with `stuff` as the inner method; otherwise 2, plus the inner calls for each variant.
    """
    variants = yield from answered_variants(task)
    if not variants.answers:
        return no_answer(task, variants)
    answers = tuple(replace(answer, chosen=True) for answer in variants.answers)
    prompt, notes = aggregation(task, answers)
    (reply,) = yield Generate((prompt,), final=True)
    return Result(reply.text, variants.contexts, reply.parsed, variants.passages, answers, notes=variants.notes + notes)


class AnsweredVariants(NamedTuple):
    """The variants of a question with their answers."""

    contexts: tuple[Context, ...]  # the context of the question, then those of the variants
    # The answers, in the order of the variants, without those that have no answer; markers in them cite `passages`.
    answers: tuple[PassageAnswer, ...]
    passages: tuple[Passage, ...]  # the numbered passages of all answers
    notes: tuple[str, ...]


def answered_variants(task: Task) -> Generator[Request | Together, Any, AnsweredVariants]:
    """Generate variants of the question from its context, then retrieve and answer each with `inner_method`.

    If the model writes fewer variants than requested, those are answered; if it writes none, the question itself is. If
    nothing is retrieved, no call is made.

    Calls: 1, plus those of `inner_method` for each variant.
    """
    task.room("aggregate", answers="")  # if the prompt alone does not fit, raise before any call
    count = task.options.variants
    (context,) = yield Retrieve((task.question,), (task.room("variants", context="", count=count),))
    if not context.text.strip():
        return AnsweredVariants((context,), (), (), ())
    (reply,) = yield Generate((task.prompt("variants", context=context.text, count=count),))
    questions = questions_in(without_reasoning(reply_text(reply, task.options.method)), count)
    notes: tuple[str, ...] = ()
    if not questions:
        questions, notes = (task.question,), ("the model generated no variants, so the question itself was used",)
    elif len(questions) < count:
        notes = (f"the model generated only {len(questions)} of {count} variants",)
    inner = find_method(task.options.inner_method).run
    alone = replace(task, choices=(), chat_history=())
    results: tuple[Result, ...] = yield Together(tuple(inner(replace(alone, question=one)) for one in questions))
    answers: list[PassageAnswer] = []
    passages: list[Passage] = []
    contexts = [context]
    for question, result in zip(questions, results, strict=True):
        contexts += result.contexts
        notes += tuple(f"{question}: {note}" for note in result.notes)
        text = without_reasoning(result.text)
        if result.found and text.strip():
            # Without cite=True, passages have no numbers, and [1] is ordinary text.
            if task.options.cite:
                numbers = range(1, len(result.passages) + 1)
                text = renumbered(text, {number: number + len(passages) for number in numbers})
            answers.append(PassageAnswer(text, question=question))
            passages += result.passages
    return AnsweredVariants(tuple(contexts), tuple(answers), tuple(passages), notes)


def aggregation(task: Task, answers: Sequence[PassageAnswer]) -> tuple[Prompt, tuple[str, ...]]:
    """The prompt with the questions and their answers, and a note if answers had to be cut."""

    def join(texts: Sequence[str]) -> str:
        pairs = zip(answers, texts, strict=True)
        return "\n\n".join(f"Question: {answer.question}\nAnswer: {text}" for answer, text in pairs)

    return combined(task, "aggregate", [answer.text for answer in answers], join)


def no_answer(task: Task, variants: AnsweredVariants) -> Result:
    """The result without answers to combine: nothing was retrieved, or no variant was answered."""
    nothing = nothing_found(task.options.empty_answer, *variants.contexts)
    if not any(context.kept for context in variants.contexts[1:]):
        return replace(nothing, notes=variants.notes + nothing.notes)
    return Result("", variants.contexts, notes=(*variants.notes, "no variant was answered"))
