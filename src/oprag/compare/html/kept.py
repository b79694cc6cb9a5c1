"""What a results file keeps of single questions: their answers, contexts and chunks."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from oprag.masking import without_keys

__all__ = ["AnswerText", "Asked", "ContextRow", "Kept", "Place"]


class Asked(NamedTuple):
    """A question as it is in the file."""

    key: str
    data: str
    name: str
    text: str
    answers: Sequence[str]
    choices: Sequence[str]
    right_choice: int | None
    evidence: Sequence[tuple[str, int, int]]
    documents: Sequence[str]
    about: Mapping[str, Any]


class AnswerText(NamedTuple):
    """An answer.

    Attributes:
        text: As many of its characters as are wanted.
        more: How many characters are left out.
        error: Why there is none, where it failed.
        notes: What a reader should know.
        route: Which way `self_route` went.
        context: The number of its context; None without one.
    """

    text: str
    more: int
    error: str | None
    notes: Sequence[str]
    route: str | None
    context: int | None


class Place(NamedTuple):
    """Where a chunk stands: its document, its page, if there are pages, and its characters there."""

    document: str
    page: int | None
    start: int
    end: int


class ContextRow(NamedTuple):
    """A context.

    Attributes:
        index_number: The number of the index.
        kept: For each chunk, as they stand in the context, its row, its rank and its cosine where that is known.
        dropped: How many chunks were left out, by reason.
    """

    index_number: int
    kept: Sequence[tuple[int, int, float | None]]
    dropped: Mapping[str, int]


class Kept:
    """Reads from the file what is asked for.

    Args:
        connection: The file.
        experiment: The name of the experiment.
    """

    def __init__(self, connection: sqlite3.Connection, experiment: str) -> None:
        self._connection = connection
        self._experiment = experiment
        self._searches: dict[tuple[int, str, str, str], list[tuple[str, str | None, int | None]]] | None = None
        self._lengths: dict[int, dict[tuple[str, int | None], int]] = {}

    def questions(self) -> list[Asked]:
        """The questions of the experiment."""
        rows = self._connection.execute(
            "SELECT key, data, questions.name, questions.question, answers, choices, right_choice, evidence, "
            "documents, about FROM questions JOIN experiment_questions AS ours ON ours.question = questions.id "
            "JOIN experiments ON experiments.id = ours.experiment WHERE experiments.name = ? ORDER BY questions.id",
            [self._experiment],
        )
        return [Asked._make((*row[:4], *map(json.loads, row[4:6]), row[6], *map(json.loads, row[7:]))) for row in rows]

    def answers(self, longest: int) -> Mapping[str, Mapping[str, AnswerText]]:
        """The answers by the keys of question and cell.

        Args:
            longest: How many characters of an answer are wanted.
        """
        found: dict[str, dict[str, AnswerText]] = defaultdict(dict)
        for question, cell, text, length, error, message, notes, route, context in self._connection.execute(
            "SELECT questions.key, cells.key, substr(text, 1, ?), length(text), error, substr(message, 1, ?), notes, "
            "route, context FROM answers JOIN cells ON cells.id = cell "
            "JOIN questions ON questions.id = answers.question",
            [longest, longest],
        ):
            failed = None if error is None else without_keys(f"{error}: {message or ''}")
            more = max(0, (length or 0) - longest)
            found[question][cell] = AnswerText(text or "", more, failed, json.loads(notes), route, context)
        return found

    def context(self, number: int) -> ContextRow:
        """A context."""
        index, kept, dropped = self._connection.execute(
            'SELECT "index", kept, dropped FROM contexts WHERE id = ?', [number]
        ).fetchone()
        return ContextRow(index, [(row, rank, cosine) for row, rank, cosine in json.loads(kept)], json.loads(dropped))

    def places(self, index: int, rows: Iterable[int]) -> dict[int, Place]:
        """Where chunks of an index stand, by their rows."""
        found = self._connection.execute(
            'SELECT row, document, page, start, "end" FROM json_each(?) JOIN chunks ON chunks."index" = ? '
            "AND chunks.row = json_each.value",
            [json.dumps(sorted(set(rows))), index],
        )
        return {row: Place(*place) for row, *place in found}

    def lengths(self, index: int) -> Mapping[tuple[str, int | None], int]:
        """How long each document of an index is, or each of its pages: where its last chunk ends."""
        if index not in self._lengths:
            rows = self._connection.execute(
                'SELECT document, page, max("end") FROM chunks WHERE "index" = ? GROUP BY document, page', [index]
            )
            self._lengths[index] = {(document, page): end for document, page, end in rows}
        return self._lengths[index]

    def found(self, index: int, question: str, values: Mapping[str, Any]) -> Sequence[int]:
        """The rows that were found for a question; none where the file does not say for certain.

        Args:
            index: The number of the index.
            question: The text of the question.
            values: The values of the setting.
        """
        if self._searches is None:
            self._searches = defaultdict(list)
            for key, embedder, depth, *place in self._connection.execute(
                'SELECT key, embedder, depth, "index", question, search, store FROM retrievals'
            ):
                self._searches[tuple(place)].append((key, embedder, depth))
        depth = values.get("max_candidates") or values.get("k")
        place = index, question, values.get("search", ""), values.get("store", "")
        # The exact index is searched once, for the largest number that a grid asks for: each context has the first.
        there = [
            (found, embedder, key)
            for key, embedder, found in self._searches.get(place, ())
            if found == depth or (place[-1] == "index" and depth is not None and found is not None and found > depth)
        ]
        if len({embedder for _, embedder, _ in there}) != 1:
            return ()
        _, _, key = min(there, key=lambda one: one[0] or 0)
        ((hits,),) = self._connection.execute("SELECT hits FROM retrievals WHERE key = ?", [key])
        return [row for row, _ in json.loads(hits)][:depth]
