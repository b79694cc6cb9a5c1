"""Registry of metrics: what each of them scores, and what it needs; and custom metrics, which are Python functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import iscoroutinefunction
from string import ascii_uppercase
from typing import Any, Literal, TypeVar

from oprag._internal.masking import describe
from oprag.compare.data.data_set import Question
from oprag.compare.db.records import named_error
from oprag.compare.experiment_methods import kind_of
from oprag.compare.metrics.functions import (
    REVISION,
    answer_cosine,
    choice_accuracy,
    evidence_coverage,
    exact_match,
    inverted_pairs,
    long_context_share,
    mrr,
    ndcg,
    paper_token_usage,
    recall,
    rouge_l,
    rouge_l_reads,
    token_f1,
)
from oprag.compare.providers.identity import qualified_name
from oprag.context import Context
from oprag.embedding.embedder import Embedder
from oprag.errors import ExperimentError, OptionError
from oprag.options import check_bool, check_choice, check_count

__all__ = [
    "COSINE",
    "DEFAULT_METRICS",
    "ITS_FUNCTION",
    "METRICS",
    "NOT_BETTER",
    "RESERVED",
    "Metric",
    "ScoredAnswer",
    "as_metric",
    "check_better",
    "check_metric_names",
    "higher_is_better",
    "metric",
    "metric_name",
    "score_all",
    "usual_metric",
]

_MAX_ERROR = 2_000  # characters of an error message

COSINE = "answer_cosine"
"""Name of the metric that needs vectors."""

NOT_BETTER = "not_better"
"""Key in the description of an experiment that lists custom metrics for which higher is not better."""

ITS_FUNCTION = "its function is declared with higher_is_better=False"
"""Reason why higher is not better, for custom metrics."""


@dataclass(frozen=True, kw_only=True)
class ScoredAnswer:
    """An answer with everything that metrics may read.

    Attributes:
        question: The question, with its gold answers, choices and evidence.
        method: Name of the method.
        text: The answer, without reasoning in <think> tags before it.
        context: Context retrieved for the original question; None if nothing was retrieved.
        spans: Spans of the kept chunks (document, start, end): character offsets in whole texts, `end` exclusive.
        located: Whether it is known where the chunks of an own pipeline are.
        ranked: Rows (in the index) of the kept chunks, best first, without chunks added as neighbors.
        relevant: Rows of all chunks of the index that overlap the gold evidence.
        k: Maximum number of chunks to keep; None for no limit.
        tokens_read: Tokens of all prompts, by the token counter of the experiment.
        tokens_of_sources: Tokens of the whole documents of the question, by the same counter.
        vectors: Vectors of the answer and of the gold answers by text, if a metric needs them.
    """

    question: Question
    method: str
    text: str
    context: Context | None = None
    spans: Sequence[tuple[str, int, int]] = ()
    located: bool = False
    ranked: Sequence[int] = ()
    relevant: frozenset[int] = frozenset()
    k: int | None = None
    tokens_read: int = 0
    tokens_of_sources: int = 0
    vectors: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A metric of an experiment."""

    name: str  # under which scores are stored
    score: Callable[[ScoredAnswer], float | bool | None]  # None if the answer has no score
    of: Literal["answer", "context"] = "answer"  # what it scores
    needs: str = ""  # the required fields of a question, in words
    has: Callable[[Question], bool] = lambda _: True  # whether a question has what is needed
    not_better: str = ""  # why a higher score is not better; empty if it is
    rule: str = ""  # version of the scoring rule, if it has had several; scores by different rules are not mixed
    function: str = ""  # MODULE:FUNCTION of a custom metric
    from_spans: bool = False  # whether a context metric only needs spans of chunks, which own pipelines may return

    @property
    def identity(self) -> str:
        """Identifier of the metric and its rule in cell keys."""
        return f"{self.function or self.name} {self.rule}".rstrip()

    def scores(self, method: str) -> bool:
        """Whether a method produces what the metric scores."""
        kind = kind_of(method)
        if self.of != "context":
            return kind.writes
        return kind.reads is not None or (kind.own and self.from_spans)

    def applies(self, given: ScoredAnswer) -> bool:
        """Whether the metric can score an answer: the method fits, and the context and question have what is needed."""
        has_input = self.of != "context" or given.context is not None or (self.from_spans and given.located)
        return has_input and self.scores(given.method) and self.has(given.question)


def _cosine(given: ScoredAnswer) -> float | None:
    if not given.text.strip():
        return 0.0  # an empty answer matches no gold answer
    if given.text not in given.vectors:
        return None
    return answer_cosine(given.vectors[given.text], [given.vectors[answer] for answer in given.question.answers])


def _chosen(given: ScoredAnswer) -> float:
    letters = ascii_uppercase[: max(4, len(given.question.choices))]
    return choice_accuracy(given.text, given.question.labels or (), letters)


def _inversions(given: ScoredAnswer) -> float | None:
    kept = () if given.context is None else given.context.kept
    return inverted_pairs([(str(chunk.source), chunk.metadata["chunk_index"]) for chunk in kept])


_GOLD: dict[str, Any] = {"needs": "gold answers", "has": lambda question: bool(question.answers)}
_EVIDENCE: dict[str, Any] = {"of": "context", "needs": "evidence", "has": lambda question: bool(question.evidence)}
_TOKENS: dict[str, Any] = {"not_better": "it counts tokens"}

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(name="token_f1", score=lambda given: token_f1(given.text, given.question.answers), **_GOLD),
        Metric(name="exact_match", score=lambda given: exact_match(given.text, given.question.answers), **_GOLD),
        Metric(
            name="choice_accuracy",
            score=_chosen,
            needs="a right choice",
            has=lambda question: question.labels is not None,
            rule=REVISION,
        ),
        Metric(
            name="rouge_l",
            score=lambda given: rouge_l(given.text, given.question.answers),
            needs="gold answers with letters from a to z or digits",
            has=lambda question: rouge_l_reads(question.answers),
        ),
        Metric(name=COSINE, score=_cosine, **_GOLD),
        Metric(
            name="evidence_coverage",
            score=lambda given: evidence_coverage(given.spans, given.question.evidence),
            from_spans=True,
            **_EVIDENCE,
        ),
        Metric(name="recall", score=lambda given: recall(given.ranked, given.relevant), **_EVIDENCE),
        Metric(name="mrr", score=lambda given: mrr(given.ranked, given.relevant), **_EVIDENCE),
        Metric(name="ndcg", score=lambda given: ndcg(given.ranked, given.relevant, given.k), **_EVIDENCE),
        Metric(
            name="inverted_pairs",
            score=_inversions,
            of="context",
            not_better="it measures how chunks are ordered, not how good an answer is",
        ),
        Metric(name="paper_token_usage", score=lambda given: paper_token_usage(given.text), **_TOKENS),
        Metric(
            name="long_context_share",
            score=lambda given: long_context_share(given.tokens_read, given.tokens_of_sources),
            **_TOKENS,
        ),
    )
}
"""All built-in metrics by name."""

_ON_REQUEST = ("recall", "mrr", "ndcg", "paper_token_usage", "long_context_share")

DEFAULT_METRICS = tuple(name for name in METRICS if name not in _ON_REQUEST)
"""Default metrics of an experiment; `evidence_coverage` is more precise than recall, MRR and nDCG, and the counted
tokens are more precise than those by a formula."""


def usual_metric(questions: Collection[Any], *, answered: bool) -> str:
    """The metric that decides between settings if no other one is chosen.

    `choice_accuracy` if all questions have choices or none has a gold answer, else `token_f1`; without a model it is
    `evidence_coverage`.
    """
    if not answered:
        return "evidence_coverage"
    chosen = all(one.choices for one in questions) or not any(one.answers for one in questions)
    return "choice_accuracy" if chosen else "token_f1"


def higher_is_better(name: str, described: Mapping[str, Any] | None = None) -> bool:
    """Whether a higher score is better; custom metrics are looked up in the description of the experiment."""
    if name in METRICS:
        return not METRICS[name].not_better
    names = (described or {}).get(NOT_BETTER)
    return not (isinstance(names, list) and name in names)


def check_better(name: str, described: Mapping[str, Any] | None = None) -> None:
    """Reject a metric for which higher is not better; see `higher_is_better`."""
    if not higher_is_better(name, described):
        why = METRICS[name].not_better if name in METRICS else ITS_FUNCTION
        raise OptionError(
            f"{name} cannot rank settings: {why}; use a metric for which higher is better, such as token_f1", name
        )


_MEASURED = ("seconds", "cpu_seconds", "cpu_percent", "peak_memory_mib")

RESERVED = frozenset(
    (
        *("cells", "asked", "answered", "failed", "remaining", "cut_short", "empty"),
        *("calls", "tokens", "money", "measured"),
        *("input_tokens", "output_tokens", "cached_tokens", "embedded_tokens", "context_tokens", "context_chunks"),
        *("question_id", "question", "gold_answers", "documents", "status", "answer", "error", "message", "notes"),
        *("route", "estimated", "cell", "experiment", "evidence_spans", "spread"),
        *(f"{name}{what}" for name in _MEASURED for what in ("", "_median", "_sd")),
    )
)
"""Result columns that are neither axes nor metrics."""

Scoring = TypeVar("Scoring", bound=Callable[[ScoredAnswer], Any])


def metric(
    *, of: Literal["answer", "context"] = "answer", higher_is_better: bool = True, version: int = 1
) -> Callable[[Scoring], Scoring]:
    """Declare what a function scores; needed only if the defaults do not fit, since any function can be a metric.

    Args:
        of: Whether it scores answers or contexts. A context metric scores what a method retrieved, also without a
            model.
        higher_is_better: Whether a higher score is better. If not, the metric is not used to choose a best setting. If
            a lower score is better, return the negative score instead.
        version: Version of the function. After a change, answers are scored again, and their replies are reused.

    Raises:
        OptionError: An argument is invalid.

    Example:
        >>> @metric(higher_is_better=False)
        ... def words(answer):
        ...     return len(answer.text.split())
    """
    check_choice("of", of, ("answer", "context"))
    check_bool("higher_is_better", higher_is_better)
    check_count("version", version, optional=False)

    def declare(function: Scoring) -> Scoring:
        not_better = "" if higher_is_better else ITS_FUNCTION
        function.__metric__ = {"of": of, "not_better": not_better, "rule": str(version)}  # type: ignore[attr-defined]
        return function

    return declare


def metric_name(given: Any) -> str:
    """Name under which the scores of a metric are stored: the name of the function."""
    return given if isinstance(given, str) else qualified_name(given, "a metric").rpartition(":")[2].rpartition(".")[2]


def check_metric_names(given: Sequence[Any], judges: Collection[str] = (), taken: Collection[str] = ()) -> None:
    """Reject unknown metrics, and names that clash with other metrics, judges or columns."""
    for name in judges:
        if name not in given:
            raise ExperimentError(f"the judge {describe(name)} is not among the metrics; add it to `metrics`", name)
        if name in METRICS:
            raise ExperimentError(f"a metric named {name!r} already exists; use a different name for the judge", name)
    known, names = (*METRICS, *judges), set[str]()
    for one in given:
        name = metric_name(one)
        _check_name(one, name, known)
        if name in names:
            raise ExperimentError(f"two metrics are named {name!r}; use different names", name)
        if name in RESERVED or name in taken:
            raise ExperimentError(
                f"a metric cannot be named {name!r}: results have a column with this name; use a different name", name
            )
        names.add(name)


def _check_name(given: Any, name: str, known: Collection[str]) -> None:
    if isinstance(given, str):
        if name not in known:
            choices = f"use one of {', '.join(known)}, or a function"
            raise ExperimentError(f"unknown metric {describe(name)}; {choices}", name)
    elif iscoroutinefunction(given):
        raise ExperimentError(f"a metric must not be async, got {describe(given)}; pass a sync function", given)
    elif name in known:
        raise ExperimentError(f"a metric named {name!r} already exists; use a different name", name)
    elif not name.isidentifier() or not callable(given):
        raise ExperimentError(f"a metric must be a name or a function, got {describe(given)}", given)


def as_metric(given: Any) -> Metric:
    """Resolve a metric given by name or as a function."""
    if isinstance(given, str):
        return METRICS[given]
    function = qualified_name(given, "a metric")
    return Metric(
        name=metric_name(given), score=given, function=function, **getattr(given, "__metric__", {"rule": "1"})
    )


def score_all(
    metrics: Sequence[Metric], answers: Sequence[ScoredAnswer], embedder: Embedder | None = None
) -> list[tuple[dict[str, float], list[str]]]:
    """Score each answer with each metric that applies; notes explain missing scores.

    Answers and gold answers are embedded (as documents) in one batch, by the same embedder for all cells.
    """
    if embedder is not None and (cosine := METRICS[COSINE]) in metrics:
        texts: dict[str, None] = {}
        for one in answers:
            if cosine.applies(one) and one.text.strip():
                texts |= dict.fromkeys((one.text, *one.question.answers))
        if texts:
            vectors = dict(zip(texts, embedder.embed_documents(list(texts)), strict=True))
            answers = [replace(one, vectors=vectors) for one in answers]
    return [_scores(metrics, one) for one in answers]


def _scores(metrics: Sequence[Metric], given: ScoredAnswer) -> tuple[dict[str, float], list[str]]:
    scores: dict[str, float] = {}
    notes: list[str] = []
    for metric in metrics:
        if not metric.applies(given):
            continue
        try:
            value = metric.score(given)
            if value is not None:
                scores[metric.name] = _as_number(value)
        except OptionError as error:
            notes.append(f"no {metric.name}: {error}")
        except Exception as error:
            if not metric.function:
                raise
            # An error of a custom metric only concerns this answer.
            notes.append(f"no {metric.name}: {named_error(error, _MAX_ERROR)}")
    return scores, notes


def _as_number(value: Any) -> float:
    """Convert a score to a number; reject others, which would make all means NaN or infinite."""
    try:
        number = math.nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise OptionError(f"it returned {describe(value)}; a metric must return a finite number or None", value)
    return number
