"""The metrics of an experiment by their names, and what each of them applies to."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from oprag.compare.cell import Cell
from oprag.compare.data.data_set import DataSet, Question, page_starts
from oprag.compare.index import Index
from oprag.compare.metrics import (
    answer_cosine,
    choice_accuracy,
    evidence_coverage,
    exact_match,
    inverted_pairs,
    long_context_share,
    paper_token_usage,
    rouge_l,
    token_f1,
)
from oprag.compare.metrics.choices import REVISIONS
from oprag.compare.spec.controls import kind_of
from oprag.context import Context
from oprag.embedding.embedder import Embedder
from oprag.errors import OptionError
from oprag.masking import describe

__all__ = [
    "COSINE",
    "METRICS",
    "RULES",
    "Scorable",
    "Scored",
    "check_metrics",
    "cosines",
    "load_metrics",
    "needs_gold",
    "of_answers",
    "scorable",
    "scores_of",
    "spans_of",
]

COSINE = "answer_cosine"


class Scored(NamedTuple):
    """What is scored.

    Attributes:
        question: The question, with its gold answers.
        method: The method.
        text: The answer.
        context: What was retrieved for the question itself; None where nothing was searched for.
        index: Where it was found.
        spans: The places of the kept chunks in whole texts, where they are needed.
        tokens_read: The tokens of all prompts, by the counter of the experiment.
        tokens_of_sources: The tokens of the whole documents of the question, by the same.
        of_context: What metrics of the context alone gave before, for other answers from the same context.
    """

    question: Question
    method: str
    text: str
    context: Context | None
    spans: Sequence[tuple[str, int, int]]
    tokens_read: int
    tokens_of_sources: int
    of_context: dict[Hashable, float | None]


Metric = Callable[[Scored], float | None]


def _of_answers(metric: Callable[[str, Sequence[str]], float]) -> Metric:
    def score(given: Scored) -> float | None:
        if not _writes(given.method) or not given.question.answers:
            return None
        return metric(given.text, given.question.answers)

    return score


def _choice(given: Scored) -> float | None:
    labels = given.question.labels
    return None if not _writes(given.method) or labels is None else choice_accuracy(given.text, labels)


def _of_context(metric: Callable[[Scored, Context], float | None]) -> Metric:
    """A metric that is the same for all answers from a context: it is computed once."""

    def score(given: Scored) -> float | None:
        if given.context is None:
            return None
        # Two questions with the same words may have other evidence.
        place = metric, given.question.evidence
        if place not in given.of_context:
            given.of_context[place] = metric(given, given.context)
        return given.of_context[place]

    return score


def _coverage(given: Scored, _: Context) -> float | None:
    evidence = given.question.evidence
    return evidence_coverage(given.spans, evidence) if evidence else None


def _inversions(_: Scored, context: Context) -> float | None:
    return inverted_pairs([(str(chunk.source), chunk.metadata["chunk_index"]) for chunk in context.kept])


def _likelihood(given: Scored) -> float | None:
    # Without gold answers there is none.
    return float(given.text) if _judges(given.method) and given.text else None


def _paper_tokens(given: Scored) -> float | None:
    return None if not _writes(given.method) else paper_token_usage(given.text)


def _share(given: Scored) -> float | None:
    return None if not _writes(given.method) else long_context_share(given.tokens_read, given.tokens_of_sources)


METRICS: dict[str, Metric | None] = {
    "token_f1": _of_answers(token_f1),
    "exact_match": _of_answers(exact_match),
    "choice_accuracy": _choice,
    "rouge_l": _of_answers(rouge_l),
    COSINE: None,
    "answer_likelihood": _likelihood,
    "evidence_coverage": _of_context(_coverage),
    "inverted_pairs": _of_context(_inversions),
    "paper_token_usage": _paper_tokens,
    "long_context_share": _share,
}
"""All metrics; those without a function are computed for many answers at a time."""

RULES = {"choice_accuracy": REVISIONS[-1]}
"""The rule by which a metric scores, where it has had several: scores by different rules are not mixed."""


class _Need(NamedTuple):
    """What a metric needs.

    Attributes:
        what: What a question must have, in words; empty where it need not have anything.
        question: Whether a question has it.
        method: Whether a method gives what is scored.
        given: What that is, in words.
    """

    what: str
    question: Callable[[Question], bool]
    method: Callable[[str], bool]
    given: str


def _writes(method: str) -> bool:
    return kind_of(method).writes == "answer"


def _judges(method: str) -> bool:
    return kind_of(method).writes == "likelihood"


def _reads(method: str) -> bool:
    return kind_of(method).reads is not None


_GOLD = _Need("gold answers", lambda question: bool(question.answers), _writes, "an answer")
_ANY_ANSWER = _Need("", lambda _: True, _writes, "an answer")
_NEEDS = {
    "token_f1": _GOLD,
    "exact_match": _GOLD,
    "choice_accuracy": _Need("a right choice", lambda question: question.labels is not None, _writes, "an answer"),
    "rouge_l": _GOLD,
    COSINE: _GOLD,
    "answer_likelihood": _GOLD._replace(method=_judges, given="a likelihood"),
    "evidence_coverage": _Need("evidence", lambda question: bool(question.evidence), _reads, "a context"),
    "inverted_pairs": _Need("", lambda _: True, _reads, "a context"),
    "paper_token_usage": _ANY_ANSWER,
    "long_context_share": _ANY_ANSWER,
}
"""What each metric needs."""


def of_answers(metric: str) -> bool:
    """Whether a metric is about what a model has written."""
    return _NEEDS[metric].method is _writes


def needs_gold(metric: str) -> bool:
    """Whether a question must have something that answers or contexts are held against."""
    return bool(_NEEDS[metric].what)


class Scorable(NamedTuple):
    """What a metric can score.

    Attributes:
        questions: How many questions.
        why: Why it is not all of them, in words.
    """

    questions: int
    why: str


def scorable(metrics: Sequence[str], cells: Iterable[Cell], data: Mapping[str, DataSet]) -> dict[str, Scorable]:
    """How many questions have what each metric needs, in a cell whose method gives what it scores.

    Args:
        metrics: The names of the metrics.
        cells: The cells.
        data: The data sets by their names.
    """
    methods: dict[str, set[str]] = {}
    for cell in cells:
        methods.setdefault(cell.data, set()).add(cell.method)
    found: dict[str, Scorable] = {}
    for metric in metrics:
        need = _NEEDS[metric]
        sets = [data[name] for name, there in methods.items() if any(map(need.method, there))]
        count = sum(need.question(question) for data_set in sets for question in data_set.questions)
        why = f"the others do not have {need.what}" if count else f"no question has {need.what}"
        found[metric] = Scorable(count, why if sets else f"no method gives {need.given}")
    return found


def check_metrics(names: Sequence[str]) -> tuple[str, ...]:
    """Refuse what is no list of metrics.

    Raises:
        OptionError: A name is unknown, or none is given.
    """
    if isinstance(names, str) or not names:
        raise OptionError(f"metrics must be a list of names, got {describe(names)}", names)
    unknown = [name for name in names if name not in METRICS]
    if unknown:
        raise OptionError(f"there is no metric {describe(unknown[0])}; there are {', '.join(METRICS)}", unknown[0])
    return tuple(dict.fromkeys(names))


def load_metrics(names: Sequence[str]) -> None:
    """Load what metrics need, before anything is spent on answers that could not be scored.

    Raises:
        MissingExtraError: It is not installed.
    """
    if "rouge_l" in names:
        rouge_l("", ("",))


def scores_of(given: Scored, names: Sequence[str]) -> tuple[dict[str, float], list[str]]:
    """The value of each metric that applies, but for those that are computed for many answers at a time.

    Returns:
        The values, and why there is none where a metric cannot read these answers.
    """
    scores: dict[str, float] = {}
    notes: list[str] = []
    for name in names:
        metric = METRICS[name]
        try:
            value = None if metric is None else metric(given)
        except OptionError as error:
            notes.append(f"no {name}: {error}")
            continue
        if value is not None and not math.isfinite(value):
            # One such value would be the mean of all.
            notes.append(f"no {name}: it is {value}, not a number")
        elif value is not None:
            scores[name] = value
    return scores, notes


def cosines(given: Sequence[Scored], embedder: Embedder) -> list[float | None]:
    """The cosine of each answer with the gold answer that it is nearest to; an empty answer is like none, and has 0.

    Args:
        given: The answers.
        embedder: Embeds answers and gold answers, all as documents.
    """
    texts: dict[str, None] = {}
    for one in given:
        if _has_cosine(one) and one.text.strip():
            texts |= dict.fromkeys((one.text, *one.question.answers))
    vectors = dict(zip(texts, embedder.embed_documents(list(texts)) if texts else (), strict=True))
    found: list[float | None] = []
    for one in given:
        if not _has_cosine(one):
            found.append(None)
        elif one.text.strip():
            found.append(answer_cosine(vectors[one.text], [vectors[answer] for answer in one.question.answers]))
        else:
            found.append(0.0)
    return found


def spans_of(
    context: Context, index: Index, documents: Mapping[str, str | Sequence[str]]
) -> list[tuple[str, int, int]]:
    """The places of the kept chunks in the whole texts of their documents."""
    spans: list[tuple[str, int, int]] = []
    for chunk in context.kept:
        piece = index.pieces[int(chunk.id or 0)]
        start = 0 if piece.page is None else page_starts(documents[piece.document])[piece.page - 1]
        spans.append((piece.document, start + piece.start, start + piece.end))
    return spans


def _has_cosine(given: Scored) -> bool:
    return _writes(given.method) and bool(given.question.answers)
