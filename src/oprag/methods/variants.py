"""Asking other questions about the same text, and answering each; the common part of step_down and reciprocal."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from oprag.assembly.stitch import Passage
from oprag.context import Context
from oprag.methods.answer import PassageAnswer, Result, nothing_found, renumbered
from oprag.methods.effects import Effect, Generate, Together
from oprag.methods.registry import find_method
from oprag.methods.replies import questions_in, text_of
from oprag.methods.task import Task

__all__ = ["Answered", "answered_variants", "no_answer", "questions_and_answers"]


class Answered(NamedTuple):
    """The variants of a question, answered.

    Attributes:
        contexts: That of the question first, then those of the variants.
        answers: The variants that got an answer, in the sequence in which they were asked; markers in them lead to
            `passages`.
        passages: The numbered passages of all answers.
        notes: What a reader of the answer should know.
    """

    contexts: tuple[Context, ...]
    answers: tuple[PassageAnswer, ...]
    passages: tuple[Passage, ...]
    notes: tuple[str, ...]


def answered_variants(task: Task) -> Generator[Effect, Any, Answered]:
    """Make variants of the question from its context, then retrieve for each, and answer it with `inner_method`.

    Fewer variants than were asked for: those. None: the question itself. Nothing retrieved: no call.

    Calls: 1, and those of `inner_method` for each variant.
    """
    count = task.options.variants
    (context,) = yield task.retrieve("variants", count=count)
    if not context.text.strip():
        return Answered((context,), (), (), ())
    (reply,) = yield Generate((task.prompt("variants", context=context.text, count=count),))
    questions = questions_in(text_of(reply, task.options.method), count)
    notes: tuple[str, ...] = ()
    if not questions:
        questions, notes = (task.question,), ("the model gave no other questions, so the question itself was asked",)
    elif len(questions) < count:
        notes = (f"the model gave {len(questions)} of {count} other questions",)
    inner = find_method(task.options.inner_method).run
    results: tuple[Result, ...] = yield Together(tuple(inner(task.asking(question)) for question in questions))
    answers: list[PassageAnswer] = []
    passages: list[Passage] = []
    contexts = [context]
    for question, result in zip(questions, results, strict=True):
        contexts += result.contexts
        notes += tuple(f"{question}: {note}" for note in result.notes)
        if result.found and result.text.strip():
            answers.append(PassageAnswer(_renumbered(task, result, len(passages)), question=question))
            passages += result.passages
    return Answered(tuple(contexts), tuple(answers), tuple(passages), notes)


def _renumbered(task: Task, result: Result, offset: int) -> str:
    # Without cite=True no passage has a number, and [1] is a part of the text.
    return renumbered(result.text, offset, len(result.passages)) if task.options.cite else result.text


def questions_and_answers(answers: Sequence[PassageAnswer]) -> str:
    """The variants and their answers, as a prompt shows them."""
    return "\n\n".join(f"Question: {answer.question}\nAnswer: {answer.text}" for answer in answers)


def no_answer(task: Task, asked: Answered) -> Result:
    """The result where there is nothing to combine: nothing was retrieved, or no variant got an answer."""
    nothing = nothing_found(task.options.empty_answer, *asked.contexts)
    if not any(context.kept for context in asked.contexts[1:]):
        return replace(nothing, notes=asked.notes + nothing.notes)
    return Result("", asked.contexts, notes=(*asked.notes, "no question got an answer"))
