"""The questions that two settings answer most differently: both answers, and the chunk maps of both contexts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from math import isnan
from string import ascii_uppercase
from typing import Any

import numpy as np

from oprag._internal.masking import shown
from oprag._internal.text_table import escaped, one_line, shortened
from oprag.compare.analysis.differences import axis_pairs
from oprag.compare.analysis.settings import by_data, counted
from oprag.compare.analysis.summary import ANSWERED, SettingSummary, ranked
from oprag.compare.db.records import JUDGED, AnswerRecord, ContextRecord, QuestionRecord
from oprag.compare.db.results_file import ResultsReader
from oprag.compare.report.page import Questions, Section, Text
from oprag.compare.results import Results

__all__ = ["chunk_map", "compared", "section"]

_MAX_QUESTIONS = 20
_MAX_TEXT, _MAX_JUDGEMENT, _MAX_NAME = 2_000, 300, 200  # characters
_WIDTH, _HEIGHT = 600, 80  # of a chunk map, in pixels
_MAX_CHUNKS = 200  # lines of a chunk map

Span = tuple[int, int]


def section(results: Results, metric: str | None) -> Section | None:
    """At most twenty questions, the largest differences between the compared settings of their data set first."""
    pairs = {data: compared(results, metric, data) for data in by_data(results.settings)}
    found = [
        (-_size(metric, pair, place), place)
        for place, question in enumerate(results.matrix.questions)
        if (pair := pairs.get(question.data))
        and (results.matrix.status[[one.rows[0] for one in pair], place] >= ANSWERED).any()
    ]
    if not found:
        return None
    with ResultsReader.open(results.path, results.experiment) as reader:
        questions = [
            _question(results, metric, reader, place, pairs[results.matrix.questions[place].data])
            for _, place in sorted(found)[:_MAX_QUESTIONS]
        ]
    parts = [
        Text(
            f"{len(questions):,} of {counted(len(found), 'question')}: those with the largest difference"
            f"{f' in {metric}' if metric else ''} between the best setting and the one that it is compared with. A "
            "chunk map has a line for each chunk of a context, in the order of the context from top to bottom, at its "
            "place in the documents from left to right; the bars are gold evidence."
        ),
        Text("`Results.to_csv(FILE, answers=True)` exports all answers.", quiet=True),
    ]
    return Section("questions", "Where answers differ most", [*parts, Questions(questions)])


def compared(results: Results, metric: str | None, data: str) -> list[SettingSummary]:
    """The best setting and one that differs from it in one axis (the order if possible), the baseline first."""
    settings = [one for one in by_data(results.settings)[data] if one.answered or one.failed]
    if metric is None or not any(metric in one.scores for one in settings):
        return settings[:2]
    best, *others = ranked([one for one in settings if metric in one.scores], metric)
    for axis in sorted((name for name in results.axes if name != "data"), key=lambda name: name != "order"):
        for pair in axis_pairs(results.matrix, axis, data):
            first, second = (results.settings[number] for number in pair)
            apart = second.by_question(metric) - first.by_question(metric)
            if best.number in pair and np.nan_to_num(apart).any():
                return [first, second]
    return [*others[:1], best]


def _size(metric: str | None, pair: Sequence[SettingSummary], place: int) -> float:
    """The score difference of a question; below 0 if it is unknown."""
    scores = [float(one.by_question(metric)[place]) for one in pair] if metric else []
    return abs(scores[1] - scores[0]) if len(scores) > 1 and not any(map(isnan, scores)) else -1.0


def _question(
    results: Results, metric: str | None, reader: ResultsReader, place: int, pair: Sequence[SettingSummary]
) -> dict[str, Any]:
    """A question with its answers in two settings; of several seeds, the first."""
    question = results.matrix.questions[place]
    sides = []
    for setting in pair:
        answer: AnswerRecord | None = results.matrix.answers[setting.rows[0], place]
        if answer is not None:
            notes = [*answer.notes]
            if metric is not None:
                value = float(setting.by_question(metric)[place])
                mean = f", mean of {setting.cells:,} runs" if setting.cells > 1 else ""
                notes.insert(0, f"{metric} {'–' if isnan(value) else f'{value:z.3f}'}{mean}")
            sides.append({"name": setting.label, **_side(question, answer, notes, reader)})
    name = f"{shown(question.data, _MAX_NAME)}, {shown(question.name, _MAX_NAME)}"
    return {"name": name, "text": shortened(question.question, _MAX_TEXT), "about": _about(question), "sides": sides}


def _side(
    question: QuestionRecord, answer: AnswerRecord, notes: Sequence[str], reader: ResultsReader
) -> dict[str, Any]:
    failure = f"No answer. {answer.error}: {shortened(answer.message or '', _MAX_TEXT)}"
    drawn, chunks = _map(question, answer.context) if answer.context is not None else ("", "")
    asked = {key: step.removeprefix(JUDGED) for step, key in answer.replies if step.startswith(JUDGED)}
    return {
        "answer": failure if answer.failed else shortened(answer.text or "", _MAX_TEXT),
        "notes": "; ".join([*notes, *([chunks] if chunks else [])]),
        "judged": [f"{asked[one.key]}: {one_line(one.text[:_MAX_JUDGEMENT])}" for one in reader.replies(asked)],
        "map": drawn,
    }


def chunk_map(chunks: Sequence[Span], gold: Iterable[Span], length: int) -> str:
    """An SVG with a line for each chunk of a context, in its order, and the gold evidence, in `length` characters."""
    scale, step = _WIDTH / max(1, length), _HEIGHT / max(1, len(chunks))
    every = 1 + len(chunks) // _MAX_CHUNKS
    evidence = [_box(scale, span, 0, _HEIGHT) for span in gold]
    lines = [_box(scale, span, place * step, min(4.0, step)) for place, span in enumerate(chunks) if not place % every]
    backward = sum(one[0] > other[0] for one, other in pairwise(chunks))
    label = f"{counted(len(chunks), 'chunk')} in the order of the context, which goes back {backward:,} times"
    return (
        f'<svg class="map" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escaped(label)}">'
        f'<path class="gold" d="{"".join(evidence)}"/><path class="kept" d="{"".join(lines)}"/></svg>'
    )


def _map(question: QuestionRecord, context: ContextRecord) -> tuple[str, str]:
    """The chunk map of a context, and the number of its chunks."""
    names = [*question.documents]
    *starts, length = accumulate(question.documents.values(), initial=0)
    kept = [one for one in context.kept if one.document < len(names)]
    spans = [(starts[one.document] + one.start, starts[one.document] + one.end) for one in kept]
    evidence = [one for one in question.evidence if one[0] in names]
    gold = [(starts[names.index(name)] + start, starts[names.index(name)] + end) for name, start, end in evidence]
    dropped = [f"{count:,} dropped by {why}" for why, count in context.dropped.items()]
    return chunk_map(spans, gold, length), ", ".join([counted(len(context.kept), "chunk"), *dropped])


def _box(scale: float, span: Span, top: float, height: float) -> str:
    """A rectangle as part of an SVG path."""
    width = max(3, round((span[1] - span[0]) * scale))
    return f"M{min(span[0] * scale, _WIDTH - width):.0f} {top:.3g}h{width}v{height:.3g}h-{width}z"


def _about(question: QuestionRecord) -> list[tuple[str, str]]:
    choices = [
        f"{letter}. {choice}{' (correct)' if number == question.right_choice else ''}"
        for number, (letter, choice) in enumerate(zip(ascii_uppercase, question.choices or (), strict=False))
    ]
    texts = {
        "Gold answer" if len(question.answers) == 1 else "Gold answers": "\n".join(question.answers),
        "Choices": "\n".join(choices),
        "Documents": ", ".join(shown(name, _MAX_NAME) for name in question.documents),
    }
    return [(name, shortened(text, _MAX_TEXT)) for name, text in texts.items() if text]
