"""The method `step_down`: answer more concrete questions, and combine their answers."""

from __future__ import annotations

from dataclasses import replace

from oprag.methods.answer import Result
from oprag.methods.run import Body, Generate
from oprag.methods.task import Task
from oprag.methods.variants import aggregation, answered_variants, no_answer

__all__ = ["step_down"]


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
