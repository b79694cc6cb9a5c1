"""What a results file says about an experiment, as plain values."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from oprag.compare.analysis.matrix import clusters_of
from oprag.compare.analysis.settings import grid_values, hashable, place_in_grid
from oprag.compare.db.reader import ResultsReader
from oprag.compare.db.records import Failure

__all__ = [
    "CellAnswers",
    "KeptAnswer",
    "Results",
    "as_results",
    "read_failures",
    "read_notes",
    "read_results",
]


class KeptAnswer(NamedTuple):
    """An answer as it is in the file, without its text.

    Attributes:
        failed: Whether there is none.
        calls: How many replies it is made of, as are the following as if its cell were alone.
        input_tokens: The tokens that models read.
        output_tokens: The tokens that models wrote.
        cached_tokens: Those of the tokens read that a model had read before.
        embedded_tokens: The tokens that were embedded, in the embedder's unit.
        context_tokens: The tokens of the context; None without one.
        scores: The value of each metric that applies.
        error: The class of the error where it failed.
        notes: What a reader should know, such as that the reply was empty.
    """

    failed: bool
    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    embedded_tokens: int
    context_tokens: int | None
    scores: dict[str, float]
    error: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class CellAnswers:
    """A cell and its answers.

    Attributes:
        key: Its content address.
        values: Its value on every axis, those of the grid first.
        asked: How many questions it is about.
        answers: The answers that there are, by the key of the question.
    """

    key: str
    values: Mapping[str, Any]
    asked: int
    answers: Mapping[str, KeptAnswer] = field(repr=False)


@dataclass(frozen=True)
class Results:
    """What there is of an experiment.

    Attributes:
        experiment: Its name.
        described: What the file says about it: its grid, models, embedders and metrics.
        cells: Its cells, in the sequence of its grid as it is now; a file has them as they came.
        clusters: What each question belongs to, by its key: its document, where it has one and its data set has ten
            or more; else the question stands for itself (in the same words about the same documents it is one, however
            often it was asked), and what follows holds for these documents alone.
    """

    experiment: str
    described: Mapping[str, Any]
    cells: Sequence[CellAnswers] = field(repr=False)
    clusters: Mapping[str, Hashable] = field(repr=False)


def as_results(given: Results | str | os.PathLike[str], experiment: str | None = None) -> Results:
    """Results as they are, or read from a file; raises what `read_results` raises."""
    return given if isinstance(given, Results) else read_results(given, experiment)


def read_results(file: str | os.PathLike[str], experiment: str | None = None) -> Results:
    """Read what there is of an experiment.

    Args:
        file: The results file.
        experiment: The name of the experiment; not needed where the file has one alone.

    Raises:
        ExperimentError: There is no such experiment in the file, or several where none is named.
        ResultsFileError: There is no such file, or it is damaged or another one.
    """
    with ResultsReader(file, experiment) as reader:
        answers: list[dict[str, KeptAnswer]] = [{} for _ in reader.cells]
        keys = [question.key for question in reader.questions]
        for one in reader.answers():
            tokens = (one.input_tokens, one.output_tokens, one.cached_tokens, one.embedded_tokens, one.context_tokens)
            kept = KeptAnswer(one.failed, one.calls, *tokens, {}, one.error, one.notes)
            answers[one.cell][keys[one.question]] = kept
        for cell, question, metric, value in reader.scores():
            answers[cell][keys[question]].scores[metric] = value
        asked = Counter(question.data for question in reader.questions)
        listed = grid_values(reader.described)
        read = [
            CellAnswers(
                cell.key,
                {name: hashable(cell.values[name]) for name in listed},
                asked[cell.values["data"]],
                ours,
            )
            for cell, ours in zip(reader.cells, answers, strict=True)
        ]
        read.sort(key=lambda cell: place_in_grid(cell.values, listed))
        return Results(reader.name, reader.described, read, dict(zip(keys, clusters_of(reader.questions), strict=True)))


def read_failures(file: str | os.PathLike[str], experiment: str) -> list[Failure]:
    """Why questions of an experiment have no answer, the commonest cause first.

    Raises:
        ExperimentError: There is no such experiment in the file.
        ResultsFileError: There is no such file, or it is damaged or another one.
    """
    with ResultsReader(file, experiment) as reader:
        return reader.failures()


def read_notes(file: str | os.PathLike[str], experiment: str) -> Counter[str]:
    """How many answers of an experiment have each note.

    Raises:
        ExperimentError: There is no such experiment in the file.
        ResultsFileError: There is no such file, or it is damaged or another one.
    """
    with ResultsReader(file, experiment) as reader:
        return reader.notes()
