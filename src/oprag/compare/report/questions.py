"""Question by question: the question, the answer and scores of each setting, and two contexts side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from math import isnan
from string import ascii_uppercase
from typing import Any, NamedTuple

from oprag.compare.analysis.settings import varying_axes
from oprag.compare.analysis.wording import counted, name_of, score
from oprag.compare.db.reader import ResultsReader
from oprag.compare.db.records import QuestionRecord, StoredAnswer
from oprag.compare.report.contexts import MAX_NAME_LENGTH, CellName, SizeLimits, Texts, chosen, sides_of, texts_of
from oprag.compare.report.page import Part, Section, Text, render
from oprag.compare.results import Results
from oprag.compare.running.replay import PromptReader, StoredPrompt
from oprag.compare.spec.experiment import Experiment
from oprag.errors import ExperimentError, MissingExtraError
from oprag.masking import shown
from oprag.text_table import one_line, shortened

__all__ = ["section"]

_METRICS = 3
_ROW = 150  # approximate bytes of a table row without the answer
_CHUNK = 330  # approximate bytes of a chunk without its text
_MAX_EVIDENCE, _MAX_FIELDS, _MAX_TEXT = 6, 10, 4_000
_MAX_JUDGEMENT = 300
# Characters: the maximum and minimum for all prompts of a context (shorter excerpts are useless), and for one call.
_MAX_PROMPTS, _MIN_PROMPTS, _CALL = 12_000, 400, 600


def section(
    results: Results, metric: str | None, experiment: Experiment | None, size: int, *, with_prompts: bool
) -> Section | None:
    """The questions, largest score differences first, up to `size` bytes; the number of the others is shown."""
    answers = sum(setting.answered + setting.failed for setting in results.settings)
    if not answers:
        return None
    with ExitStack() as stack:
        reader = stack.enter_context(ResultsReader(results.path, results.experiment))
        prompts = None if experiment is None else stack.enter_context(PromptReader(experiment, results.path))
        texts = texts_of(None if prompts is None else prompts.resolved, [question.key for question in reader.questions])
        shown_prompts = prompts if with_prompts else None
        drill = _DrillDown(results, metric, texts, reader=reader, prompts=shown_prompts, size=size, answers=answers)
        bodies = drill.bodies()
        total = len(reader.questions)
    parts: list[Part] = [
        Text(
            "Questions with the largest score differences come first. Where possible, the two contexts differ only in "
            "order. The strip at the top of a chunk map shows the positions of the kept chunks in the documents; below "
            "it are the gold evidence and a line for each chunk, in the order of the context."
        )
    ]
    parts += [Text(note, quiet=True) for note in (texts.lacking, drill.lacking) if note]
    if len(bodies) < total:
        parts.append(
            Text(
                f"{len(bodies):,} of {total:,} questions are shown, to limit the size of this page; "
                "`oprag compare --csv FILE --answers` exports all answers."
            )
        )
    return Section("questions", "Question by question", parts, render("questions.html", bodies=bodies))


class _AnswerRow(NamedTuple):
    name: str
    answer: str
    note: str
    judged: Sequence[str]
    scores: Sequence[str]
    tokens: str


class _DrillDown:
    """Renders the questions, with details shortened to fit the size of the page."""

    def __init__(
        self,
        results: Results,
        metric: str | None,
        texts: Texts,
        *,
        reader: ResultsReader,
        prompts: PromptReader | None,
        size: int,
        answers: int,
    ) -> None:
        self._results = results
        self._metric = metric
        self._texts = texts
        self._reader = reader
        self._prompts = prompts
        self._size = size
        self._judged: dict[tuple[int, int], list[tuple[str, str]]] = {}
        for cell, question, name, reply in reader.judgements(_MAX_JUDGEMENT):
            self._judged.setdefault((cell, question), []).append((name, one_line(reply)))
        judged = sum(len(name) + len(reply) + 40 for some in self._judged.values() for name, reply in some)
        count = len(reader.questions)
        self._limits = _limits(max(0, size - judged), count, answers, with_prompts=prompts is not None)
        self.lacking = ""
        if prompts is not None and self._limits.prompts < _MIN_PROMPTS:
            self._hide_prompts("there are too many answers for a page of limited size")
        self._metrics = sorted(results.ranking_metrics, key=lambda name: name != metric)[:_METRICS]
        self._cells = [*_named_cells(results)]
        self._answers: list[dict[str, StoredAnswer]] = [{} for _ in range(count)]
        for answer in reader.answers(longest=self._limits.answer):
            self._answers[answer.question][reader.cells[answer.cell].key] = answer

    def bodies(self) -> list[str]:
        """The questions that fit, as HTML."""
        found: list[str] = []
        used = 0
        for question in sorted(range(len(self._answers)), key=self._negative_score_range):
            body = self._body(len(found) + 1, question)
            used += len(body.encode())
            if used > self._size:
                break
            found.append(body)
        return found

    def _scores(self, question: int) -> dict[str, float]:
        """The score of each cell in the main metric."""
        found = {cell.key: self._value(self._metric or "", cell, question) for cell in self._cells}
        return {cell: value for cell, value in found.items() if value is not None}

    def _value(self, name: str, cell: CellName, question: int) -> float | None:
        values = self._results.matrix.values.get(name)
        return None if values is None or isnan(value := values[cell.row, question]) else float(value)

    def _row(self, cell: CellName, question: int, answer: StoredAnswer) -> _AnswerRow:
        notes = [*([f"({answer.more:,} characters more)"] if answer.more else []), *answer.notes]
        if answer.route:
            notes.insert(0, f"route: {answer.route}")
        failure = f"No answer. {answer.error}: {(answer.message or '')[: self._limits.answer]}"
        text = failure if answer.failed else answer.text
        scores = [score(self._value(metric, cell, question)) for metric in self._metrics]
        # If no model was called, show the tokens of the context.
        called = self._value("calls", cell, question)
        tokens = self._value("tokens" if called else "context_tokens", cell, question) or 0.0
        judged = [
            f"{name} {score(self._value(name, cell, question))}: {reply}"
            for name, reply in self._judged.get((answer.cell, answer.question), ())
        ]
        return _AnswerRow(cell.name, text, "; ".join(notes), judged, scores, "–" if answer.error else f"{tokens:,.0f}")

    def _negative_score_range(self, question: int) -> float:
        scores = self._scores(question).values()
        return min(scores) - max(scores) if scores else 1.0

    def _body(self, number: int, place: int) -> str:
        answers, scores, question = self._answers[place], self._scores(place), self._reader.questions[place]
        cells = [cell for cell in self._cells if cell.key in answers]
        pair = [(cell, answers[cell.key], scores.get(cell.key)) for cell in chosen(cells, answers, scores)]
        sides, texts = sides_of(number, question, pair, reader=self._reader, texts=self._texts, limits=self._limits)
        prompts = [(cell.name, [*self._calls(cell, question)]) for cell, _, _ in pair]
        shown = {
            "text": shortened(question.question, _MAX_TEXT),
            "summary": _summary(question, scores, self._metric),
            "about": _about(question),
            "cut": self._limits.answer if any(answer.more for answer in answers.values()) else 0,
            "metrics": self._metrics,
            "rows": [self._row(cell, place, answers[cell.key]) for cell in cells],
            "sides": sides,
            "texts": texts,
            "prompts": prompts if any(calls for _, calls in prompts) else [],
        }
        return render("question.html", number=number, question=shown)

    def _calls(self, cell: CellName, question: QuestionRecord) -> Iterator[Mapping[str, Any]]:
        """The prompts of an answer with their replies, shortened to fit."""
        if self._prompts is None:
            return
        try:
            calls = self._prompts.at(cell.key, question.key)
        except (ExperimentError, MissingExtraError) as error:
            self._hide_prompts(str(error))
            return
        limit = max(1, self._limits.prompts // _CALL)
        available = self._limits.prompts // max(1, min(len(calls), limit))
        for call in calls[:limit]:
            yield _call(call, available)
        if len(calls) > limit:
            yield {"step": f"{counted(len(calls) - limit, 'call')} more", "messages": (), "reply": ""}

    def _hide_prompts(self, why: str) -> None:
        self._prompts = None
        self.lacking = f"Prompts are not shown: {why}. `oprag.compare.prompts_of` returns the prompts of an answer."


def _named_cells(results: Results) -> Iterator[CellName]:
    """The cells, named by their setting, plus the seed and repeat if the setting has several."""
    for setting in results.settings:
        differ, _ = varying_axes([results.matrix.cells[row] for row in setting.setting.cells])
        for row in setting.setting.cells:
            cell = results.matrix.cells[row]
            seeds = [f"{axis} {cell.values[axis]}" for axis in ("seed", "repeat") if axis in differ]
            yield CellName(row, cell.key, ", ".join([name_of(setting.values, results.axes), *seeds]), setting.values)


def _limits(size: int, questions: int, answers: int, *, with_prompts: bool) -> SizeLimits:
    """How much to show of each question, given the size of all questions in bytes.

    Answers are allocated first, then chunk texts and prompts share the rest.
    """
    available = size / max(1, questions)
    rows = answers / max(1, questions)
    cut = int(min(2_000, max(80, (0.7 * available / max(1, rows)) - _ROW)))
    left = max(0.0, 0.95 * available - rows * (_ROW + min(cut, 160)))
    side = left / 2 / (3 if with_prompts else 2)
    chunks = int(min(40, max(3, side / _CHUNK)))
    return SizeLimits(cut, chunks, int(min(1_500, side / chunks)), int(min(_MAX_PROMPTS, side)))


def _call(call: StoredPrompt, available: int) -> Mapping[str, Any]:
    reply = _without_middle(call.reply, available // 4)
    per_message = (available - len(reply)) // max(1, len(call.messages))
    messages = [(message.role, _without_middle(message.content, per_message)) for message in call.messages]
    return {"step": call.step, "messages": messages, "reply": reply}


def _without_middle(text: str, longest: int) -> str:
    """Shorten a text in the middle, since the question is at the end of a prompt."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]} [… {len(text) - 2 * half:,} characters …] {text[-half:]}"


def _summary(question: QuestionRecord, scores: Mapping[str, float], metric: str | None) -> str:
    name = f"{shown(question.data, MAX_NAME_LENGTH)}, {shown(question.name, MAX_NAME_LENGTH)}"
    if not scores or metric is None:
        return name
    low, high = min(scores.values()), max(scores.values())
    ends = score(low) if low == high else f"{score(low)} to {score(high)}"
    return f"{name}: {metric} {ends}"


def _about(question: QuestionRecord) -> list[tuple[str, str]]:
    about: list[tuple[str, str]] = []
    if question.answers:
        about.append(("Gold answers" if len(question.answers) > 1 else "Gold answer", "\n".join(question.answers)))
    if question.choices:
        letters = zip(ascii_uppercase, question.choices, strict=False)
        choices = [
            f"{letter}. {choice}{' (correct)' if number == question.right_choice else ''}"
            for number, (letter, choice) in enumerate(letters)
        ]
        about.append(("Choices", "\n".join(choices)))
    about.append(("Documents", "\n".join(shown(name, MAX_NAME_LENGTH) for name in question.documents)))
    if question.evidence:
        places = [
            f"{shown(name, MAX_NAME_LENGTH)}, characters {start:,}–{end:,}"
            for name, start, end in question.evidence[:_MAX_EVIDENCE]
        ]
        hidden = len(question.evidence) - len(places)
        about.append(("Gold evidence", "\n".join([*places, *([f"and {hidden:,} more"] if hidden else [])])))
    about += [
        (shown(str(name), MAX_NAME_LENGTH), str(value)) for name, value in list(question.about.items())[:_MAX_FIELDS]
    ]
    return [(name, shortened(text, _MAX_TEXT)) for name, text in about]
