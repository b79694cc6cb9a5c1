"""The answers of an experiment as rows of plain values."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from math import fsum
from typing import Any

from oprag.compare.db.reader import ResultsReader
from oprag.compare.db.records import Measurement
from oprag.compare.reading import CellAnswers, Results
from oprag.compare.setting import settings_of
from oprag.compare.spec.axes import AVERAGED
from oprag.compare.table import metrics_of

__all__ = ["TEXTS", "answer_columns", "answer_rows"]

_QUESTION = ("question_id", "question", "gold_answers", "documents")
_ANSWER = ("status", "answer", "error", "message", "notes", "route", "calls")
_TOKENS = ("input_tokens", "output_tokens", "cached_tokens", "tokens")
_CONTEXT = ("estimated", "embedded_tokens", "context_tokens", "context_chunks")
TEXTS = (*_QUESTION, "status", "answer", "error", "message", "route")
"""The columns that hold text; all others but axes hold numbers."""
_PHASES = ("indexing", "retrieval", "generation")
_MEASURED = ("seconds", "cpu_percent", "peak_memory_bytes")


def answer_columns(results: Results, axes: Sequence[str], *, measured: bool) -> list[str]:
    """The columns of answers.

    Args:
        results: The results.
        axes: The axes that are columns.
        measured: Whether something was measured.
    """
    taken = [f"{phase}_{what}" for phase in _PHASES for what in _MEASURED] if measured else []
    return [*axes, *_averaged(results), *_QUESTION, *_ANSWER, *_TOKENS, *_CONTEXT, *metrics_of(results), *taken]


def answer_rows(
    results: Results, path: str | os.PathLike[str], axes: Sequence[str], *, measured: bool
) -> Iterator[dict[str, Any]]:
    """A row for each answer and each failure, cell by cell in the sequence of the grid.

    Args:
        results: The results.
        path: The results file; it is read while rows are taken.
        axes: The axes that are columns.
        measured: Whether what was measured has columns.

    Raises:
        ResultsFileError: There is no such file, or it is damaged or another one.
    """
    columns = answer_columns(results, axes, measured=measured)
    averaged = _averaged(results)
    effective = {cell.key: setting.values for setting in settings_of(results.cells) for cell in setting.cells}
    with ResultsReader(path, results.experiment) as reader:
        places = {cell.key: place for place, cell in enumerate(reader.cells)}
        taken = _measured(reader) if measured else {}
        for cell in results.cells:
            fixed = {name: effective[cell.key].get(name) for name in axes}
            fixed |= {name: _averaged_value(cell, name) for name in averaged}
            for question, row in sorted(_rows(reader, places[cell.key]).items()):
                known = {**row, **fixed, **taken.get((cell.key, reader.questions[question].key), {})}
                yield {name: known.get(name) for name in columns}


def _averaged(results: Results) -> list[str]:
    """The seed and the repeat, where cells differ in them."""
    return [name for name in AVERAGED if len({_averaged_value(cell, name) for cell in results.cells} - {None}) > 1]


def _averaged_value(cell: CellAnswers, name: str) -> Any:
    return None if name == "seed" and cell.values["order"] != "random" else cell.values[name]


def _rows(reader: ResultsReader, cell: int) -> dict[int, dict[str, Any]]:
    """What is known of each answer and its question, with its scores, by the place of the question."""
    texts = {text.question: text.text for text in reader.answer_texts(cells=[cell])}
    found: dict[int, dict[str, Any]] = {}
    for answer in reader.answers([cell]):
        question = reader.questions[answer.question]
        found[answer.question] = {
            "question_id": question.name,
            "question": question.question,
            "gold_answers": question.answers,
            "documents": question.documents,
            "status": "failed" if answer.failed else "answered",
            "answer": None if answer.failed else texts[answer.question],
            "tokens": answer.input_tokens + answer.output_tokens,
            **{name: getattr(answer, name) for name in (*_ANSWER[2:], *_TOKENS[:3], *_CONTEXT)},
            "notes": [*answer.notes],
        }
    for _, place, metric, value in reader.scores([cell]):
        found[place][metric] = value
    return found


def _measured(reader: ResultsReader) -> dict[tuple[str, str], dict[str, float]]:
    """The means of what was measured, and the most memory, by the keys of cell and question."""
    attempts: dict[tuple[str, str, str], list[Measurement]] = {}
    for one in reader.measurements():
        attempts.setdefault((one.cell, one.question, one.phase), []).append(one)
    found: dict[tuple[str, str], dict[str, float]] = {}
    for (cell, question, phase), some in attempts.items():
        found.setdefault((cell, question), {}).update(
            {
                f"{phase}_seconds": fsum(one.seconds for one in some) / len(some),
                f"{phase}_cpu_percent": fsum(one.cpu_percent for one in some) / len(some),
                f"{phase}_peak_memory_bytes": max(one.peak_memory_bytes for one in some),
            }
        )
    return found
