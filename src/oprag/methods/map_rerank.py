"""The method `map_rerank`: answer from each passage, and choose the best answer."""

from __future__ import annotations

from dataclasses import replace

from oprag.embedding.cosine import cosine
from oprag.methods.answer import PassageAnswer, Result, nothing_found
from oprag.methods.replies import rated_answer, reply_text, without_reasoning
from oprag.methods.run import Body, Embed, Generate, Retrieve
from oprag.methods.task import Task, split_passages

__all__ = ["map_rerank"]

_NO_ANSWER = "no passage gave an answer"
_NO_CONFIDENCE = "no confidence could be parsed, so this is the first answer in the order of the context"


def map_rerank(task: Task) -> Body:
    """Answer from each passage with a confidence, and choose the best answer; ties by the order of the context.

    `rank_by="cosine"` ranks by the cosine similarity of question and answer instead; Şakar and Emekci (2024, doi
    10.1017/nlp.2024.53) describe both. Answers whose confidence cannot be parsed are not chosen, and a note has their
    number; if there is no other, the result is the first answer.

    Calls: n, the number of passages of at most `passage_tokens`.
    """
    (context,) = yield Retrieve((task.question,))
    task = task.reading(context, task.room("rerank", context=""))
    passages = split_passages(context, task.options.passage_tokens)
    if not passages:
        return nothing_found(task.options.empty_answer, context)
    replies = yield Generate(
        tuple(task.prompt("rerank", context=task.shown(passage, number)) for number, passage in enumerate(passages, 1))
    )
    answers: list[PassageAnswer] = []
    for passage, reply in zip(passages, replies, strict=True):
        text, confidence = rated_answer(without_reasoning(reply_text(reply, "map_rerank")))
        answers.append(PassageAnswer(text, passage, confidence=confidence))
    candidates = [number for number, answer in enumerate(answers) if answer.text]
    notes: tuple[str, ...] = ()
    if not candidates:
        return Result("", (context,), passages=passages, answers=tuple(answers), notes=(_NO_ANSWER,))
    if task.options.rank_by == "cosine":
        texts = tuple(answers[number].text for number in candidates)
        (question,), vectors = yield Embed((task.question,), texts)
        for number, vector in zip(candidates, vectors, strict=True):
            answers[number] = replace(answers[number], cosine=cosine(question, vector))
        best = max(candidates, key=lambda number: answers[number].cosine or 0.0)
    elif rated := [number for number in candidates if answers[number].confidence is not None]:
        best = max(rated, key=lambda number: answers[number].confidence or 0.0)
        if unrated := len(candidates) - len(rated):
            notes = (f"no confidence could be parsed for {unrated} of {len(candidates)} answers, which cannot win",)
    else:
        best, notes = candidates[0], (_NO_CONFIDENCE,)
    answers[best] = replace(answers[best], chosen=True)
    return Result(answers[best].text, (context,), passages=passages, answers=tuple(answers), notes=notes)
