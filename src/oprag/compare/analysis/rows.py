"""Settings and answers as rows of plain values; all rows have the same columns."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from oprag.compare.analysis.matrix import COUNTS, MEASURED, ResultMatrix
from oprag.compare.analysis.settings import HasValues, varying_axes
from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.db.reader import ResultsReader
from oprag.compare.db.records import AnswerRecord, CellRecord, QuestionRecord
from oprag.compare.spec.axes import AVERAGED, axes

__all__ = ["TEXTS", "answer_columns", "answer_rows", "axis_columns", "setting_rows"]

_ALWAYS = ("method", "order", "k", "data", "model", "embedder")
_ANSWERS = ("cells", "asked", "answered", "failed", "remaining", "cut_short", "empty")

_QUESTION = ("question_id", "question", "gold_answers", "documents")
_ANSWER = ("status", "answer", "error", "message", "notes", "route", "calls")
_TOKENS = ("input_tokens", "output_tokens", "cached_tokens", "tokens")
_CONTEXT = ("estimated", "embedded_tokens", "context_tokens", "context_chunks")
TEXTS = (*_QUESTION, "status", "answer", "error", "message", "route")
"""Text columns of the answer rows."""


def axis_columns(settings: Sequence[HasValues]) -> list[str]:
    """Axes in which settings differ, then constant axes that are always listed or differ from their default."""
    differ, same = varying_axes(settings)
    known = axes()
    return [
        *differ,
        *(name for name, value in same.items() if name in _ALWAYS or (value != known[name].default)),
    ]


def setting_rows(settings: Sequence[SettingSummary], names: Sequence[str]) -> list[dict[str, Any]]:
    """One row per setting, all with the same columns; `names` are the axis columns."""
    metrics = list(dict.fromkeys(name for one in settings for name in one.scores))
    priced = any("money" in one.per_answer for one in settings)
    columns = [_base_columns(one, names, metrics, priced=priced) for one in settings]
    if any(one.measured for one in settings):
        columns = [plain | _measured_columns(one) for plain, one in zip(columns, settings, strict=True)]
    return columns


def _base_columns(
    setting: SettingSummary, names: Sequence[str], metrics: Sequence[str], *, priced: bool
) -> dict[str, Any]:
    plain: dict[str, Any] = {name: setting.values.get(name) for name in names}
    for metric in metrics:
        summary = setting.scores.get(metric)
        plain |= {
            metric: summary and summary.mean,
            f"{metric}_low": summary and summary.low,
            f"{metric}_high": summary and summary.high,
            f"{metric}_median": summary and summary.median,
            f"{metric}_sd": summary and summary.standard_deviation,
            f"{metric}_n": summary.n if summary else 0,
        }
    plain |= {name: getattr(setting, name) for name in _ANSWERS}
    return plain | {name: setting.cost(name) for name in (*COUNTS, "tokens", *(["money"] if priced else []))}


def _measured_columns(setting: SettingSummary) -> dict[str, Any]:
    plain: dict[str, Any] = {"measured": setting.measured}
    for name in MEASURED:
        summary = setting.measurements.get(name)
        plain |= {
            name: summary and summary.mean,
            f"{name}_median": summary and summary.median,
            f"{name}_sd": summary and summary.standard_deviation,
        }
    return plain


def answer_columns(matrix: ResultMatrix, names: Sequence[str]) -> list[str]:
    """Columns of the answer rows; `names` are the axis columns."""
    measured = MEASURED if "seconds" in matrix.values else ()
    of_question = [*names, *_averaged(matrix), *_QUESTION, *matrix.field_names]
    return [*of_question, *_ANSWER, *_TOKENS, *_CONTEXT, *matrix.metrics, *measured]


def answer_rows(matrix: ResultMatrix, path: str | os.PathLike[str], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """One row per answer or failure, cell by cell in grid order; the file stays open until the last row.

    Raises:
        ResultsFileError: The file is missing, corrupt, or not a results file.
    """
    columns = answer_columns(matrix, names)
    averaged = _averaged(matrix)
    effective = {cell: setting.values for setting in matrix.settings for cell in setting.cells}
    column_of = {question.key: column for column, question in enumerate(matrix.questions)}
    with ResultsReader(path, matrix.experiment) as reader:
        for number, cell in enumerate(matrix.cells):
            fixed = {name: effective[number].get(name) for name in names}
            fixed |= {name: _averaged_value(cell, name) for name in averaged}
            answers = [one for one in reader.answers([cell.key], longest=None) if one.question in column_of]
            for answer in sorted(answers, key=lambda one: column_of[one.question]):
                column = column_of[answer.question]
                known = {
                    **_answer_columns(answer, matrix.questions[column]),
                    **matrix.fields[column],
                    **fixed,
                    **_scores_and_measurements(matrix, number, column),
                }
                yield {name: known.get(name) for name in columns}


def _scores_and_measurements(matrix: ResultMatrix, row: int, column: int) -> dict[str, float]:
    """Scores and measurements of one answer, without missing ones."""
    names = [*matrix.metrics, *(name for name in MEASURED if name in matrix.values)]
    return {name: float(value) for name in names if not np.isnan(value := matrix.values[name][row, column])}


def _averaged(matrix: ResultMatrix) -> list[str]:
    """Those of the seed and the repeat in which cells differ."""
    return [name for name in AVERAGED if len({_averaged_value(cell, name) for cell in matrix.cells} - {None}) > 1]


def _averaged_value(cell: CellRecord, name: str) -> Any:
    return None if name == "seed" and cell.values["order"] != "random" else cell.values[name]


def _answer_columns(answer: AnswerRecord, question: QuestionRecord) -> dict[str, Any]:
    """An answer with its question."""
    return {
        "question_id": question.name,
        "question": question.question,
        "gold_answers": question.answers,
        "documents": question.documents,
        "status": "failed" if answer.failed else "answered",
        "answer": answer.text,
        "tokens": answer.input_tokens + answer.output_tokens,
        **{name: getattr(answer, name) for name in (*_ANSWER[2:], *_TOKENS[:3], *_CONTEXT)},
        "notes": [*answer.notes],
    }
