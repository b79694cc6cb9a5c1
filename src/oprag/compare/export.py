"""Results as rows, and these as CSV and pandas data frames."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from oprag._internal.files.writing import FileKind, replacing
from oprag.compare.analysis.matrix import ResultMatrix
from oprag.compare.analysis.settings import varying_axes
from oprag.compare.analysis.summary import COUNTS, MEASURED, PROBLEMS, SettingSummary
from oprag.compare.db.records import AnswerRecord
from oprag.compare.grid import AVERAGED, axes

__all__ = ["CSV", "answer_columns", "answer_rows", "axis_columns", "setting_rows", "write_csv"]

_ALWAYS = ("method", "order", "k", "data", "model", "embedder")
_QUESTION = ("question_id", "question", "gold_answers", "documents")
_STORED = ("error", "message", "route", "calls", "input_tokens", "output_tokens", "cached_tokens")
_CONTEXT = ("estimated", "embedded_tokens", "context_tokens", "context_chunks")

_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
# Columns of every table with one row per setting, or one row per answer; others depend on the axes and metrics.
_REQUIRED_COLUMNS = ({"asked", "answered", "failed", "tokens"}, {"question_id", "gold_answers", "status", "tokens"})
_HEAD = 1 << 16  # bytes read to find the column names

Row = Mapping[str, Any]


def _is_csv(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD).decode(errors="replace")
        columns = next(csv.reader(io.StringIO(head)), [])
    except (OSError, csv.Error):
        return False
    return any(names.issubset(columns) for names in _REQUIRED_COLUMNS)


CSV = FileKind("a CSV table of oprag", _is_csv)
"""Files written by `write_csv`."""


def axis_columns(settings: Sequence[SettingSummary]) -> list[str]:
    """Axes in which settings differ, then constant axes that are always listed or differ from their default."""
    most_first = sorted(settings, key=lambda one: -len(one.values))
    values = {name: value for one in most_first for name, value in one.values.items()}
    listed = [name for name, value in values.items() if name in _ALWAYS or value != axes()[name].default]
    return list(dict.fromkeys([*varying_axes(settings), *listed]))


def setting_rows(settings: Sequence[SettingSummary], names: Sequence[str]) -> list[dict[str, Any]]:
    """One row per setting, all with the same columns; `names` are the axis columns."""
    metrics = list(dict.fromkeys(name for one in settings for name in one.scores))
    costs = [*COUNTS, "tokens", *(["money"] if any("money" in one.per_answer for one in settings) else [])]
    is_measured = any(one.measured for one in settings)
    rows: list[dict[str, Any]] = []
    for one in settings:
        row: dict[str, Any] = {name: one.values.get(name) for name in names}
        for metric in metrics:
            summary = one.scores.get(metric)
            row[metric] = summary and summary.mean
            row |= {f"{metric}_{end}": summary and getattr(summary, end) for end in ("low", "high", "median")}
            row |= {f"{metric}_sd": summary and summary.standard_deviation, f"{metric}_n": summary.n if summary else 0}
        row |= {name: getattr(one, name) for name in ("cells", "asked", "answered", *PROBLEMS)}
        row |= {name: one.cost(name) for name in costs}
        if is_measured:
            row["measured"] = one.measured
            for name in MEASURED:
                taken = one.measurements.get(name)
                row[name] = taken and taken.mean
                row |= {f"{name}_median": taken and taken.median, f"{name}_sd": taken and taken.standard_deviation}
        rows.append(row)
    return rows


def answer_columns(matrix: ResultMatrix, names: Sequence[str]) -> list[str]:
    """Columns of the answer rows; `names` are the axis columns."""
    stored = ("status", "answer", "error", "message", "notes", *_STORED[2:], "tokens", *_CONTEXT)
    scores = (*matrix.metrics, *(MEASURED if "seconds" in matrix.values else ()))
    return [*names, *_averaged(matrix), *_QUESTION, *matrix.field_names, *stored, *scores]


def answer_rows(matrix: ResultMatrix, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """One row per answer or failure, cell by cell in grid order."""
    columns = answer_columns(matrix, names)
    effective = {row: setting.values for setting in matrix.settings for row in setting.rows}
    for row, cell in enumerate(matrix.cells):
        for column, question in enumerate(matrix.questions):
            answer: AnswerRecord | None = matrix.answers[row, column]
            if answer is None:
                continue
            known = {
                **{name: getattr(answer, name) for name in (*_STORED, *_CONTEXT)},
                "question_id": question.name,
                "question": question.question,
                "gold_answers": question.answers,
                "documents": [*question.documents],
                "status": "failed" if answer.failed else "answered",
                "answer": answer.text,
                "notes": [*answer.notes],
                "tokens": answer.input_tokens + answer.output_tokens,
                **matrix.fields[column],
                **{name: effective[row].get(name) for name in names},
                **{name: _averaged_value(cell.values, name) for name in AVERAGED},
            }
            for name in (*matrix.metrics, *MEASURED):
                if name in matrix.values and not np.isnan(value := matrix.values[name][row, column]):
                    known[name] = float(value)
            yield {name: known.get(name) for name in columns}


def _averaged(matrix: ResultMatrix) -> list[str]:
    """Those of the seed and the repeat in which cells differ."""
    return [
        name for name in AVERAGED if len({_averaged_value(cell.values, name) for cell in matrix.cells} - {None}) > 1
    ]


def _averaged_value(values: Mapping[str, Any], name: str) -> Any:
    return None if name == "seed" and values["order"] != "random" else values[name]


def write_csv(path: str | os.PathLike[str], columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Write a comma-separated CSV file in UTF-8, atomically; an existing file is replaced.

    Lists are written as JSON, None as an empty cell. Strings that a spreadsheet would evaluate as a formula (they start
    with =, +, - or @, also after whitespace, a tab or a line break) are prefixed with an apostrophe.
    """
    with replacing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="", write_through=True)
        # With "\r\n" (RFC 4180) the writer quotes texts that contain "\r" or "\n"; with "\n" it would not quote "\r".
        writer = csv.writer(text, lineterminator="\r\n")
        # Column names can come from fields of the data, so they are escaped like any other text.
        for line in chain([columns], ([row.get(name) for name in columns] for row in rows)):
            writer.writerow(map(_cell, line))
        text.detach()


def _cell(value: Any) -> Any:
    if isinstance(value, list | tuple):
        value = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value
