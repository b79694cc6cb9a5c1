"""Results that tests write down: matrices of scores, and what is made of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from oprag.compare.analysis.matrix import ResultMatrix, matrix_of
from oprag.compare.db.records import CellRecord, Spent
from oprag.compare.grid import axes
from oprag.compare.meter import Measurement
from oprag.compare.results import Results

DEFAULTS: Mapping[str, Any] = {name: axis.default for name, axis in axes().items()} | {
    "data": "book",
    "model": "m",
    "embedder": "local",
}

Scores = Mapping[str, float | None]
"""The score of each question by its key; None where it failed."""


def made(
    scores: Scores,
    *,
    asked: int = 0,
    tokens: int = 10,
    written: int = 3,
    context: int | None = None,
    scored: bool = True,
    estimated: bool = False,
    measured: Mapping[str, Measurement] | None = None,
    **values: Any,
) -> Any:
    """A cell with the scores of its answers, how many questions it asks at least, and what answers took."""
    return SimpleNamespace(
        scores=scores,
        asked=asked,
        tokens=tokens,
        written=written,
        context=context,
        scored=scored,
        estimated=estimated,
        measured=measured or {},
        values={**DEFAULTS, **values},
    )


def frame(*cells: Any, **described: Any) -> Results:
    """The results of cells; nothing of them is in a file."""
    return Results(results_of(*cells, **described), "none.db")


def results_of(
    *cells: Any,
    metric: str = "token_f1",
    questions: Iterable[str] = (),
    documents: Mapping[str, str] | None = None,
    clusters: Mapping[str, Hashable] | None = None,
    described: Mapping[str, Any] | None = None,
    about: Mapping[str, Mapping[str, Any]] | None = None,
    **options: Any,
) -> ResultMatrix:
    """The matrix of cells; of questions without an answer as well, with their documents and what is said about them."""
    keys = list(dict.fromkeys([*questions, *(key for cell in cells for key in cell.scores)]))
    keys += [f"left {number}" for number in range(len(keys), max((cell.asked for cell in cells), default=0))]
    places = [(number, key, cell) for number, cell in enumerate(cells) for key in cell.scores]
    reader: Any = SimpleNamespace(
        path="results.db",
        name="x",
        described=described or {},
        cells=[CellRecord(f"cell {number}", cell.values, {}) for number, cell in enumerate(cells)],
        questions=[
            SimpleNamespace(
                key=key,
                name=key,
                data=_data_of(key, cells),
                question=f"Question {key}?",
                documents=[(documents or {}).get(key, "book")],
                about=(about or {}).get(key, {}),
                evidence=[],
            )
            for key in keys
        ],
        answers=lambda: [
            SimpleNamespace(
                cell=f"cell {number}",
                question=key,
                failed=cell.scores[key] is None,
                calls=2,
                input_tokens=cell.tokens,
                output_tokens=cell.written,
                cached_tokens=1,
                estimated=cell.estimated,
                embedded_tokens=5,
                context_tokens=cell.context,
                error="ModelError" if cell.scores[key] is None else None,
                message="down" if cell.scores[key] is None else None,
                notes=(),
                route=None,
                scores={metric: cell.scores[key]} if cell.scored and cell.scores[key] is not None else {},
                **(cell.measured[key]._asdict() if key in cell.measured else dict.fromkeys(Measurement._fields)),
            )
            for number, key, cell in places
        ],
        cores=tuple,
        spent=Spent,
    )
    matrix = replace(matrix_of(reader), **options)
    if clusters is None:
        return matrix
    names = [str(clusters.get(key, key)) for key in keys]
    return replace(matrix, clusters=np.unique(names, return_inverse=True)[1])


def _data_of(key: str, cells: Sequence[Any]) -> str:
    return next((str(cell.values["data"]) for cell in cells if key in cell.scores), "book")
