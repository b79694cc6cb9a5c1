"""Question by question: what was asked, each setting's answer and scores, and two contexts side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from string import ascii_uppercase
from typing import Any, NamedTuple

from oprag.compare.analysis.wording import counted, name_of, score
from oprag.compare.db.reader import ResultsReader
from oprag.compare.db.records import AnswerText, QuestionRecord
from oprag.compare.metrics.registry import more_is_better
from oprag.compare.report.contexts import LONGEST_NAME, CellName, Limits, Texts, chosen, sides_of
from oprag.compare.report.page import Part, Section, Text, render
from oprag.compare.results import Results
from oprag.text_table import shortened

__all__ = ["section"]

_METRICS = 3
_ROW = 150  # bytes of a row of answers without the answer, about
_CHUNK = 330  # bytes of a chunk in a context without its text, about
_EVIDENCE, _ABOUT, _LONGEST = 6, 10, 4_000


def section(results: Results, metric: str | None, texts: Texts, size: int) -> Section | None:
    """The questions, those first whose answers differ most in score; those that do not fit in `size` are counted."""
    answers = sum(setting.answered + setting.failed for setting in results.settings)
    if not answers:
        return None
    with ResultsReader(results.path, results.experiment) as reader:
        drill = _DrillDown(results, metric, texts, reader=reader, size=size, answers=answers)
        bodies = drill.bodies()
    total = len(drill.questions)
    parts: list[Part] = [
        Text(
            "Those come first whose answers differ most in score. Where there are, the two contexts differ in the "
            "order alone. In a chunk map the strip at the top is the whole of the documents, with what was kept; "
            "below it is the gold evidence, and below that a line for each chunk in the order in which it is read."
        )
    ]
    if texts.lacking:
        parts.append(Text(texts.lacking, quiet=True))
    if len(bodies) < total:
        parts.append(
            Text(
                f"{counted(total - len(bodies), 'question')} more in the file: `oprag compare --csv` has all answers. "
                f"So that this page opens quickly, {len(bodies):,} of {total:,} are shown here."
            )
        )
    return Section("questions", "Question by question", parts, render("questions.html", bodies=bodies))


class _Row(NamedTuple):
    name: str
    answer: str
    note: str
    scores: Sequence[str]
    tokens: str


class _DrillDown:
    """The questions, each as much of it as there is room for."""

    def __init__(
        self, results: Results, metric: str | None, texts: Texts, *, reader: ResultsReader, size: int, answers: int
    ) -> None:
        self._results = results
        self._metric = metric
        self._texts = texts
        self._reader = reader
        self._size = size
        self.questions = reader.questions
        # Answers before chunks: first the room for rows, then that for their texts.
        room = size / max(1, len(self.questions))
        rows = answers / max(1, len(self.questions))
        self._cut = int(min(2_000, max(80, (0.7 * room / max(1, rows)) - _ROW)))
        left = max(0.0, 0.95 * room - rows * (_ROW + min(self._cut, 160)))
        chunks = int(min(40, max(3, left / 2 / (2 * _CHUNK))))
        self._limits = Limits(chunks, int(min(1_500, max(0.0, left / 2 / (2 * chunks)))))
        keys = [cell.key for cell in reader.cells]
        self._answers: dict[str, dict[str, AnswerText]] = {question.key: {} for question in self.questions}
        for answer in reader.answer_texts(self._cut):
            self._answers[self.questions[answer.question].key][keys[answer.cell]] = answer
        self._metrics = self._shown_metrics()
        matrix = self._matrix = results.matrix
        self._cells = [*self._named_cells()]
        self._rows = {cell.key: row for row, cell in enumerate(matrix.cells)}
        self._columns = {question.key: column for column, question in enumerate(matrix.questions)}

    def bodies(self) -> list[str]:
        """The questions that fit, as HTML."""
        found: list[str] = []
        used = 0
        for question in sorted(self.questions, key=self._spread):
            body = self._body(len(found) + 1, question)
            used += len(body.encode())
            if used > self._size:
                break
            found.append(body)
        return found

    def _named_cells(self) -> list[CellName]:
        cells: list[CellName] = []
        for setting in self._results.settings:
            name = name_of(setting.values, self._results.axes)
            ours = [self._matrix.cells[cell] for cell in setting.setting.cells]
            for cell in ours:
                differ = [
                    f", {axis} {cell.values[axis]}"
                    for axis in ("seed", "repeat")
                    if len({one.values[axis] for one in ours}) > 1
                ]
                cells.append(CellName(cell.key, name + "".join(differ), setting.values))
        return cells

    def _shown_metrics(self) -> list[str]:
        described = self._results.matrix.described
        scored = [name for name in self._results.metrics if more_is_better(name, described)]
        return sorted(scored, key=lambda name: name != self._metric)[:_METRICS]

    def _scores(self, question: QuestionRecord) -> dict[str, float]:
        """The score of each cell, in the metric of the report."""
        metric = self._metric
        found = {cell: self._value(metric or "", cell, question) for cell in self._rows}
        return {cell: score for cell, score in found.items() if score is not None}

    def _value(self, name: str, cell: str, question: QuestionRecord) -> float | None:
        """The score or the cost of an answer."""
        if name not in self._matrix.values:
            return None
        value = float(self._matrix.values[name][self._rows[cell], self._columns[question.key]])
        return None if isnan(value) else value

    def _row(self, cell: CellName, question: QuestionRecord, answer: AnswerText) -> _Row:
        notes = [*([f"({answer.more:,} characters more)"] if answer.more else []), *answer.notes]
        if answer.route:
            notes.insert(0, f"route: {answer.route}")
        text = f"No answer. {answer.error}" if answer.error is not None else answer.text
        scores = [score(self._value(metric, cell.key, question)) for metric in self._metrics]
        # Without a model, the tokens of the context.
        called = self._value("calls", cell.key, question)
        tokens = self._value("tokens" if called else "context_tokens", cell.key, question) or 0.0
        return _Row(cell.name, text, "; ".join(notes), scores, "–" if answer.error else f"{tokens:,.0f}")

    def _spread(self, question: QuestionRecord) -> float:
        scores = self._scores(question).values()
        return min(scores) - max(scores) if scores else 1.0

    def _body(self, number: int, question: QuestionRecord) -> str:
        answers, scores = self._answers[question.key], self._scores(question)
        cells = [cell for cell in self._cells if cell.key in answers]
        pair = [(cell, answers[cell.key], scores.get(cell.key)) for cell in chosen(cells, answers, scores)]
        sides, texts = sides_of(number, question, pair, reader=self._reader, texts=self._texts, limits=self._limits)
        shown = {
            "text": _cut(question.question),
            "told": _told(question, scores, self._metric),
            "about": _about(question),
            "cut": self._cut if any(answer.more for answer in answers.values()) else 0,
            "metrics": self._metrics,
            "rows": [self._row(cell, question, answers[cell.key]) for cell in cells],
            "sides": sides,
            "texts": texts,
        }
        return render("question.html", number=number, question=shown)


def _told(question: QuestionRecord, scores: Mapping[str, float], metric: str | None) -> str:
    told = f"{shortened(question.data, LONGEST_NAME)}, {shortened(question.name, LONGEST_NAME)}"
    if not scores or metric is None:
        return told
    low, high = min(scores.values()), max(scores.values())
    ends = score(low) if low == high else f"{score(low)} to {score(high)}"
    return f"{told}: {metric} {ends}"


def _about(question: QuestionRecord) -> list[tuple[str, str]]:
    about: list[tuple[str, str]] = []
    if question.answers:
        about.append(("Gold answers" if len(question.answers) > 1 else "Gold answer", "\n".join(question.answers)))
    if question.choices:
        marks = zip(ascii_uppercase, question.choices, strict=False)
        right = question.right_choice
        told = [
            f"{letter}. {choice}{' (right)' if number == right else ''}"
            for number, (letter, choice) in enumerate(marks)
        ]
        about.append(("Choices", "\n".join(told)))
    about.append(("Documents", "\n".join(question.documents)))
    if question.evidence:
        places = [f"{name}, characters {start:,}–{end:,}" for name, start, end in question.evidence]
        more = [f"and {len(places) - _EVIDENCE:,} more"] if len(places) > _EVIDENCE else []
        about.append(("Gold evidence", "\n".join([*places[:_EVIDENCE], *more])))
    about += [(shortened(str(name), LONGEST_NAME), str(value)) for name, value in list(question.about.items())[:_ABOUT]]
    return [(name, _cut(text)) for name, text in about]


def _cut(text: Any) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
