"""Question by question: what was asked, each setting's answer and scores, and two contexts side by side."""

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
from oprag.compare.report.contexts import LONGEST_NAME, CellName, Limits, Texts, chosen, sides_of, texts_of
from oprag.compare.report.page import Part, Section, Text, render
from oprag.compare.results import Results
from oprag.compare.running.replay import PromptReader, ShownPrompt
from oprag.compare.spec.experiment import Experiment
from oprag.errors import ExperimentError, MissingExtraError
from oprag.text_table import one_line, shortened

__all__ = ["section"]

_METRICS = 3
_ROW = 150  # bytes of a row of answers without the answer, about
_CHUNK = 330  # bytes of a chunk in a context without its text, about
_EVIDENCE, _ABOUT, _LONGEST = 6, 10, 4_000
_LONGEST_JUDGEMENT = 300
# Characters of the prompts of a context, and of one call: with fewer, nothing can be made of them.
_MOST_PROMPTS, _FEWEST_PROMPTS, _CALL = 12_000, 400, 600


def section(
    results: Results, metric: str | None, experiment: Experiment | None, size: int, *, with_prompts: bool
) -> Section | None:
    """The questions, those first whose answers differ most in score; those that do not fit in `size` are counted."""
    answers = sum(setting.answered + setting.failed for setting in results.settings)
    if not answers:
        return None
    with ExitStack() as stack:
        reader = stack.enter_context(ResultsReader(results.path, results.experiment))
        prompts = None if experiment is None else stack.enter_context(PromptReader(experiment, results.path))
        texts = texts_of(None if prompts is None else prompts.resolved, [question.key for question in reader.questions])
        wanted = prompts if with_prompts else None
        drill = _DrillDown(results, metric, texts, reader=reader, prompts=wanted, size=size, answers=answers)
        bodies = drill.bodies()
        total = len(reader.questions)
    parts: list[Part] = [
        Text(
            "Questions whose answers differ most in score come first. Where possible, the two contexts differ in order "
            "alone. In a chunk map the strip at the top shows the kept chunks along the documents; below it are the "
            "gold evidence, and a line for each chunk in reading order."
        )
    ]
    parts += [Text(told, quiet=True) for told in (texts.lacking, drill.lacking) if told]
    if len(bodies) < total:
        parts.append(
            Text(
                f"{len(bodies):,} of {total:,} questions are shown, so that this page opens quickly; "
                "`oprag compare --csv FILE --answers` writes all answers."
            )
        )
    return Section("questions", "Question by question", parts, render("questions.html", bodies=bodies))


class _Row(NamedTuple):
    name: str
    answer: str
    note: str
    judged: Sequence[str]
    scores: Sequence[str]
    tokens: str


class _DrillDown:
    """The questions, each as much of it as there is room for."""

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
        for cell, question, name, reply in reader.judgements(_LONGEST_JUDGEMENT):
            self._judged.setdefault((cell, question), []).append((name, one_line(reply)))
        judged = sum(len(name) + len(reply) + 40 for some in self._judged.values() for name, reply in some)
        count = len(reader.questions)
        self._limits = _limits(max(0, size - judged), count, answers, with_prompts=prompts is not None)
        self.lacking = ""
        if prompts is not None and self._limits.prompts < _FEWEST_PROMPTS:
            self._stop_prompts("there are too many answers for a page that opens quickly")
        self._metrics = sorted(results.ranking_metrics, key=lambda name: name != metric)[:_METRICS]
        self._cells = [*_named_cells(results)]
        self._answers: list[dict[str, StoredAnswer]] = [{} for _ in range(count)]
        for answer in reader.answers(longest=self._limits.answer):
            self._answers[answer.question][reader.cells[answer.cell].key] = answer

    def bodies(self) -> list[str]:
        """The questions that fit, as HTML."""
        found: list[str] = []
        used = 0
        for question in sorted(range(len(self._answers)), key=self._spread):
            body = self._body(len(found) + 1, question)
            used += len(body.encode())
            if used > self._size:
                break
            found.append(body)
        return found

    def _scores(self, question: int) -> dict[str, float]:
        """The score of each cell, in the metric of the report."""
        found = {cell.key: self._value(self._metric or "", cell, question) for cell in self._cells}
        return {cell: value for cell, value in found.items() if value is not None}

    def _value(self, name: str, cell: CellName, question: int) -> float | None:
        values = self._results.matrix.values.get(name)
        return None if values is None or isnan(value := values[cell.row, question]) else float(value)

    def _row(self, cell: CellName, question: int, answer: StoredAnswer) -> _Row:
        notes = [*([f"({answer.more:,} characters more)"] if answer.more else []), *answer.notes]
        if answer.route:
            notes.insert(0, f"route: {answer.route}")
        said = f"No answer. {answer.error}: {(answer.message or '')[: self._limits.answer]}"
        text = said if answer.failed else answer.text
        scores = [score(self._value(metric, cell, question)) for metric in self._metrics]
        # Without a model, the tokens of the context.
        called = self._value("calls", cell, question)
        tokens = self._value("tokens" if called else "context_tokens", cell, question) or 0.0
        judged = [
            f"{name} {score(self._value(name, cell, question))}: {reply}"
            for name, reply in self._judged.get((answer.cell, answer.question), ())
        ]
        return _Row(cell.name, text, "; ".join(notes), judged, scores, "–" if answer.error else f"{tokens:,.0f}")

    def _spread(self, question: int) -> float:
        scores = self._scores(question).values()
        return min(scores) - max(scores) if scores else 1.0

    def _body(self, number: int, place: int) -> str:
        answers, scores, question = self._answers[place], self._scores(place), self._reader.questions[place]
        cells = [cell for cell in self._cells if cell.key in answers]
        pair = [(cell, answers[cell.key], scores.get(cell.key)) for cell in chosen(cells, answers, scores)]
        sides, texts = sides_of(number, question, pair, reader=self._reader, texts=self._texts, limits=self._limits)
        prompts = [(cell.name, [*self._calls(cell, question)]) for cell, _, _ in pair]
        shown = {
            "text": shortened(question.question, _LONGEST),
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
        """The prompts of an answer with their replies, cut to the room that there is."""
        if self._prompts is None:
            return
        try:
            calls = self._prompts.at(cell.key, question.key)
        except (ExperimentError, MissingExtraError) as error:
            self._stop_prompts(str(error))
            return
        most = max(1, self._limits.prompts // _CALL)
        room = self._limits.prompts // max(1, min(len(calls), most))
        for call in calls[:most]:
            yield _call(call, room)
        if len(calls) > most:
            yield {"step": f"{counted(len(calls) - most, 'call')} more", "messages": (), "reply": ""}

    def _stop_prompts(self, why: str) -> None:
        self._prompts = None
        self.lacking = f"Prompts are not shown: {why}. `prompts_of` of `oprag.compare` shows those of an answer."


def _named_cells(results: Results) -> Iterator[CellName]:
    """The cells, with the name of their setting, and their seed and repeat where it has several."""
    for setting in results.settings:
        differ, _ = varying_axes([results.matrix.cells[row] for row in setting.setting.cells])
        for row in setting.setting.cells:
            cell = results.matrix.cells[row]
            seeds = [f"{axis} {cell.values[axis]}" for axis in ("seed", "repeat") if axis in differ]
            yield CellName(row, cell.key, ", ".join([name_of(setting.values, results.axes), *seeds]), setting.values)


def _limits(size: int, questions: int, answers: int, *, with_prompts: bool) -> Limits:
    """How much is shown of each question, given the room for all of them.

    Answers before chunks: first the room for rows, then that for their texts, and for prompts.
    """
    room = size / max(1, questions)
    rows = answers / max(1, questions)
    cut = int(min(2_000, max(80, (0.7 * room / max(1, rows)) - _ROW)))
    left = max(0.0, 0.95 * room - rows * (_ROW + min(cut, 160)))
    side = left / 2 / (3 if with_prompts else 2)
    chunks = int(min(40, max(3, side / _CHUNK)))
    return Limits(cut, chunks, int(min(1_500, side / chunks)), int(min(_MOST_PROMPTS, side)))


def _call(call: ShownPrompt, room: int) -> Mapping[str, Any]:
    reply = _without_middle(call.reply, room // 4)
    each = (room - len(reply)) // max(1, len(call.messages))
    messages = [(message.role, _without_middle(message.content, each)) for message in call.messages]
    return {"step": call.step, "messages": messages, "reply": reply}


def _without_middle(text: str, longest: int) -> str:
    """A text without its middle: a prompt has the question at its end."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]} [… {len(text) - 2 * half:,} characters …] {text[-half:]}"


def _summary(question: QuestionRecord, scores: Mapping[str, float], metric: str | None) -> str:
    name = f"{shortened(question.data, LONGEST_NAME)}, {shortened(question.name, LONGEST_NAME)}"
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
            f"{letter}. {choice}{' (right)' if number == question.right_choice else ''}"
            for number, (letter, choice) in enumerate(letters)
        ]
        about.append(("Choices", "\n".join(choices)))
    about.append(("Documents", "\n".join(question.documents)))
    if question.evidence:
        places = [f"{name}, characters {start:,}–{end:,}" for name, start, end in question.evidence]
        more = [f"and {len(places) - _EVIDENCE:,} more"] if len(places) > _EVIDENCE else []
        about.append(("Gold evidence", "\n".join([*places[:_EVIDENCE], *more])))
    about += [(shortened(str(name), LONGEST_NAME), str(value)) for name, value in list(question.about.items())[:_ABOUT]]
    return [(name, shortened(text, _LONGEST)) for name, text in about]
