"""Answers held against the replies that they were made of."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

from oprag.compare.db.keys import digest
from oprag.compare.db.records import Done

__all__ = ["ANSWER", "CHECKED", "answer_digest", "found", "reply_digest"]

CHECKED = "key, text, input_tokens, output_tokens, cached_tokens, estimated, finish_reason"
"""The columns of a reply that its digest covers."""


ANSWER = (
    "status, text, error, message, notes, route, calls, input_tokens, output_tokens, cached_tokens, estimated, "
    "embedded_tokens, context_tokens, context_embedder_tokens, context_chunks, context"
)
"""The columns of an answer that its digest covers, beside its replies and its scores."""


def reply_digest(key: str, text: str, *others: float | str | None) -> str:
    """The check of a reply: of its text, its tokens and its finish reason."""
    return digest(key, text, *others)


def found(connection: sqlite3.Connection, experiment: str) -> Done:
    """The answers of an experiment, each held against the replies that it was made of."""
    columns = ", ".join(f"answers.{column}" for column in ANSWER.split(", "))
    answers = connection.execute(
        f"SELECT answers.id, cells.key, questions.key, answers.digest, {columns} "
        "FROM answers JOIN cells ON cells.id = answers.cell JOIN questions ON questions.id = answers.question "
        "JOIN experiment_cells ON experiment_cells.cell = cells.id "
        "JOIN experiment_questions ON experiment_questions.question = questions.id "
        "AND experiment_questions.experiment = experiment_cells.experiment "
        "JOIN experiments ON experiments.id = experiment_cells.experiment WHERE experiments.name = ? "
        "ORDER BY answers.id",
        [experiment],
    )
    replies = _Following(connection.execute("SELECT answer, reply FROM calls ORDER BY answer, number"))
    scores = _Following(connection.execute("SELECT answer, metric, value FROM scores ORDER BY answer, metric"))
    good = {
        key
        for key, *others, check in connection.execute(f"SELECT {CHECKED}, digest FROM replies")
        if reply_digest(key, *others) == check
    }
    result = Done(set(), {}, 0)
    broken = 0
    for number, cell, question, check, *values in answers:
        made_of = [reply for (reply,) in replies.of(number)]
        if check != answer_digest(values, made_of, scores.of(number)):
            broken += 1
        elif values[0] == "failed":
            result.failed[cell, question] = values[2]
        elif good.issuperset(made_of):
            result.answered.add((cell, question))
        else:
            broken += 1
    return result._replace(broken=broken)


class _Following:
    """Rows that belong to answers, in the sequence of these; read once, whatever their number."""

    def __init__(self, rows: Iterable[Sequence[Any]]) -> None:
        self._groups = groupby(rows, itemgetter(0))
        self._next = next(self._groups, None)

    def of(self, answer: int) -> list[Sequence[Any]]:
        """The rows of an answer, which must be behind the last one that was asked for."""
        while self._next is not None and self._next[0] < answer:
            self._next = next(self._groups, None)
        if self._next is None or self._next[0] > answer:
            return []
        found = [row[1:] for row in self._next[1]]
        self._next = next(self._groups, None)
        return found


def answer_digest(values: Iterable[Any], replies: Iterable[str], scores: Iterable[Sequence[Any]]) -> str:
    """The check of an answer: of its columns, the replies that it is made of, and its scores."""
    return digest(*values, "calls", *replies, "scores", *chain.from_iterable(scores))
