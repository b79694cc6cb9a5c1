"""Matrices of results that tests write down, and the same as the modules read them that are not yet on the matrix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from oprag.compare.analysis.matrix import ResultMatrix, matrix_of
from oprag.compare.db.records import Measurement
from oprag.compare.spec.axes import axes

DEFAULTS: Mapping[str, Any] = {name: axis.default for name, axis in axes().items()} | {
    "data": "book",
    "model": "m",
    "embedder": "local",
}

Scores = Mapping[str, float | None]
"""The score of each question by its key; None where it failed."""


def made(scores: Scores, *, tokens: int = 10, seconds: Mapping[str, float] | None = None, **values: Any) -> Any:
    """A cell with the scores of its answers, and with what they took."""
    return SimpleNamespace(scores=scores, tokens=tokens, seconds=seconds or {}, values={**DEFAULTS, **values})


def results_of(
    *cells: Any,
    metric: str = "token_f1",
    questions: Iterable[str] = (),
    documents: Mapping[str, str] | None = None,
    described: Mapping[str, Any] | None = None,
    about: Mapping[str, Mapping[str, Any]] | None = None,
) -> ResultMatrix:
    """The matrix of cells; of questions without an answer as well, with their documents and what is said about them."""
    keys = list(dict.fromkeys([*questions, *(key for cell in cells for key in cell.scores)]))
    of = {key: number for number, key in enumerate(keys)}
    places = [(number, key, cell) for number, cell in enumerate(cells) for key in cell.scores]
    reader: Any = SimpleNamespace(
        path="results.db",
        name="x",
        described=described or {},
        cells=[SimpleNamespace(key=f"cell {number}", values=cell.values) for number, cell in enumerate(cells)],
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
                cell=number,
                question=of[key],
                failed=cell.scores[key] is None,
                calls=2,
                input_tokens=cell.tokens,
                output_tokens=3,
                cached_tokens=1,
                embedded_tokens=5,
                context_tokens=None,
                error="ModelError" if cell.scores[key] is None else None,
                notes=(),
                route=None,
            )
            for number, key, cell in places
        ],
        scores=lambda: [
            (number, of[key], metric, score) for number, key, cell in places if (score := cell.scores[key]) is not None
        ],
        measurements=lambda: [
            Measurement(f"cell {number}", key, 1, "retrieval", seconds, 50.0, 1_000, 10)
            for number, cell in enumerate(cells)
            for key, seconds in cell.seconds.items()
        ],
    )
    return matrix_of(reader)


def _data_of(key: str, cells: Sequence[Any]) -> str:
    return next((str(cell.values["data"]) for cell in cells if key in cell.scores), "book")
