"""More concrete questions first, then one answer from the answers that are nearest to the question."""

from __future__ import annotations

from dataclasses import replace

from oprag.embedding.cosine import cosine
from oprag.methods.answer import Result
from oprag.methods.effects import Body, Embed, Generate
from oprag.methods.task import Task
from oprag.methods.variants import answered_variants, no_answer, questions_and_answers

__all__ = ["reciprocal"]


def reciprocal(task: Task) -> Body:
    """As `step_down`, but only the best answers are combined, by their cosine similarity to the question, best first.

    Answers below `answer_threshold` are left out; if none reaches it, the best one is used, with a note.
    After Şakar and Emekci (2024, doi 10.1017/nlp.2024.53).

    Calls: v + 2 with `stuff` inside, else 2 and those of the inner method for each of v variants.
    """
    asked = yield from answered_variants(task)
    if not asked.answers:
        return no_answer(task, asked)
    (question,), vectors = yield Embed((task.question,), tuple(answer.text for answer in asked.answers))
    answers = [
        replace(answer, cosine=cosine(question, vector)) for answer, vector in zip(asked.answers, vectors, strict=True)
    ]
    ranked = sorted(range(len(answers)), key=lambda number: -(answers[number].cosine or 0.0))
    threshold = task.options.answer_threshold
    near = [number for number in ranked if (answers[number].cosine or 0.0) >= threshold]
    notes = asked.notes
    if not near:
        near = ranked[:1]
        notes += (f"no answer reached answer_threshold={threshold}, so the nearest one was used",)
    for number in near:
        answers[number] = replace(answers[number], chosen=True)
    best = questions_and_answers([answers[number] for number in near])
    (reply,) = yield Generate((task.prompt("aggregate", answers=best),), final=True)
    return Result(reply.text, asked.contexts, reply.parsed, asked.passages, tuple(answers), notes=notes)
