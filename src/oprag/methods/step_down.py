"""More concrete questions first, then one answer from their answers."""

from __future__ import annotations

from dataclasses import replace

from oprag.methods.answer import Result
from oprag.methods.effects import Body, Generate
from oprag.methods.task import Task
from oprag.methods.variants import answered_variants, no_answer, questions_and_answers

__all__ = ["step_down"]


def step_down(task: Task) -> Body:
    """Ask `variants` less abstract questions, retrieve and answer each with `inner_method`, and combine the answers.

    After Şakar and Emekci (2024, doi 10.1017/nlp.2024.53).

    Calls: v + 2 with `stuff` inside, else 2 and those of the inner method for each of v variants.
    """
    asked = yield from answered_variants(task)
    if not asked.answers:
        return no_answer(task, asked)
    answers = tuple(replace(answer, chosen=True) for answer in asked.answers)
    (reply,) = yield Generate((task.prompt("aggregate", answers=questions_and_answers(answers)),), final=True)
    return Result(reply.text, asked.contexts, reply.parsed, asked.passages, answers, notes=asked.notes)
