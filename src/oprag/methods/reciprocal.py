"""The method `reciprocal`: answer more concrete questions, and combine the answers most similar to the question."""

from __future__ import annotations

from dataclasses import replace

from oprag.embedding.cosine import cosine
from oprag.methods.answer import Result
from oprag.methods.run import Body, Embed, Generate
from oprag.methods.step_down import aggregation, answered_variants, no_answer
from oprag.methods.task import Task

__all__ = ["reciprocal"]


def reciprocal(task: Task) -> Body:
    """Like `step_down`, but combine only answers with a high cosine similarity to the question, best first.

    Answers below `answer_threshold` are dropped; if none reaches it, the best one is used, with a note.
    After Şakar and Emekci (2024, doi 10.1017/nlp.2024.53).

    Calls: v + 2 for v variants with `stuff` as the inner method; otherwise 2, plus the inner calls for each variant.
    """
    variants = yield from answered_variants(task)
    if not variants.answers:
        return no_answer(task, variants)
    (question,), vectors = yield Embed((task.question,), tuple(answer.text for answer in variants.answers))
    answers = [
        replace(answer, cosine=cosine(question, vector))
        for answer, vector in zip(variants.answers, vectors, strict=True)
    ]
    ranked = sorted(range(len(answers)), key=lambda number: -(answers[number].cosine or 0.0))
    threshold = task.options.answer_threshold
    chosen = [number for number in ranked if (answers[number].cosine or 0.0) >= threshold]
    notes = variants.notes
    if not chosen:
        chosen = ranked[:1]
        notes += (f"no answer reached answer_threshold={threshold}, so the most similar one was used",)
    for number in chosen:
        answers[number] = replace(answers[number], chosen=True)
    prompt, cut = aggregation(task, [answers[number] for number in chosen])
    (reply,) = yield Generate((prompt,), final=True)
    return Result(reply.text, variants.contexts, reply.parsed, variants.passages, tuple(answers), notes=notes + cut)
