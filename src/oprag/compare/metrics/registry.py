"""The metrics of an experiment by their names: what each of them scores, and what it needs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from oprag.compare.controls import kind_of
from oprag.compare.data.data_set import Question
from oprag.compare.metrics.answers import answer_cosine, exact_match, long_context_share, paper_token_usage, token_f1
from oprag.compare.metrics.choices import REVISION, choice_accuracy
from oprag.compare.metrics.contexts import evidence_coverage, inverted_pairs, mrr, ndcg, recall
from oprag.compare.metrics.rouge import rouge_l
from oprag.context import Context
from oprag.errors import OptionError

__all__ = [
    "COSINE",
    "DEFAULT_METRICS",
    "ITS_FUNCTION",
    "METRICS",
    "NOT_BETTER",
    "Metric",
    "ScoredAnswer",
    "check_better",
    "more_is_better",
]

COSINE = "answer_cosine"
"""The metric that needs vectors."""

NOT_BETTER = "not_better"
"""Where results name the metrics of a user's own of which more is not better."""

ITS_FUNCTION = "its function says so"
"""Why more of a metric of a user's own is not better."""


@dataclass(frozen=True, kw_only=True)
class ScoredAnswer:
    """An answer with all that metrics read.

    Attributes:
        question: The question, with its gold answers, choices and evidence.
        method: The name of the method.
        text: The answer; of methods that ask for likelihoods, the number as text.
        context: The context of the question itself; None if nothing was retrieved.
        spans: The places of the kept chunks in whole texts: (document, start, end).
        ranked: The kept chunks by rank, as rows of the index; without those that were filled in around them.
        relevant: The rows of all chunks of the index that have a character of the gold evidence.
        k: Maximum number of chunks to keep; None without such a limit.
        tokens_read: The tokens of all prompts, by the counter of the experiment.
        tokens_of_sources: The tokens of the whole documents of the question, by the same.
        vectors: The vectors of the answer and of the gold answers by their texts, where a metric needs them.
        context_scores: Scores of the context alone that are known from other answers from the same context.
    """

    question: Question
    method: str
    text: str
    context: Context | None = None
    spans: Sequence[tuple[str, int, int]] = ()
    ranked: Sequence[int] = ()
    relevant: frozenset[int] = frozenset()
    k: int | None = None
    tokens_read: int = 0
    tokens_of_sources: int = 0
    vectors: Mapping[str, Any] = field(default_factory=dict, repr=False)
    context_scores: dict[Hashable, float | bool | None] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A metric of an experiment.

    Attributes:
        name: Its name, under which scores are kept.
        score: The score of an answer; None where it has none.
        of: What it scores; a metric of contexts alone is computed once for all answers from a context.
        needs: What a question must have, in words; empty if nothing.
        has: Whether a question has it.
        not_better: Why more of it is not better; empty where it is.
        rule: The rule by which it scores, where it has had several: scores by different rules are not mixed.
        function: MODULE:FUNCTION of one that is not ours.
    """

    name: str
    score: Callable[[ScoredAnswer], float | bool | None]
    of: Literal["answer", "context", "likelihood"] = "answer"
    needs: str = ""
    has: Callable[[Question], bool] = lambda _: True
    not_better: str = ""
    rule: str = ""
    function: str = ""

    @property
    def identity(self) -> str:
        """What tells its scores from others in the address of a cell."""
        return f"{self.function or self.name} {self.rule}".rstrip()

    def scores(self, method: str) -> bool:
        """Whether a method gives what it scores."""
        kind = kind_of(method)
        return kind.reads is not None if self.of == "context" else kind.writes == self.of

    def applies(self, given: ScoredAnswer) -> bool:
        """Whether an answer is of such a method, and its question has what is needed."""
        there = self.of != "context" or given.context is not None
        return there and self.scores(given.method) and self.has(given.question)


def _cosine(given: ScoredAnswer) -> float | None:
    if not given.text.strip():
        return 0.0  # an empty answer is like none
    if given.text not in given.vectors:
        return None
    return answer_cosine(given.vectors[given.text], [given.vectors[answer] for answer in given.question.answers])


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
            score=lambda given: choice_accuracy(given.text, given.question.labels or ()),
            needs="a right choice",
            has=lambda question: question.labels is not None,
            rule=REVISION,
        ),
        Metric(name="rouge_l", score=lambda given: rouge_l(given.text, given.question.answers), **_GOLD),
        Metric(name=COSINE, score=_cosine, **_GOLD),
        Metric(
            name="answer_likelihood",
            score=lambda given: float(given.text) if given.text else None,
            of="likelihood",
            **_GOLD,
        ),
        Metric(
            name="evidence_coverage",
            score=lambda given: evidence_coverage(given.spans, given.question.evidence),
            **_EVIDENCE,
        ),
        Metric(name="recall", score=lambda given: recall(given.ranked, given.relevant), **_EVIDENCE),
        Metric(name="mrr", score=lambda given: mrr(given.ranked, given.relevant), **_EVIDENCE),
        Metric(name="ndcg", score=lambda given: ndcg(given.ranked, given.relevant, given.k), **_EVIDENCE),
        Metric(
            name="inverted_pairs",
            score=_inversions,
            of="context",
            not_better="it says how chunks are ordered, not how good an answer is",
        ),
        Metric(name="paper_token_usage", score=lambda given: paper_token_usage(given.text), **_TOKENS),
        Metric(
            name="long_context_share",
            score=lambda given: long_context_share(given.tokens_read, given.tokens_of_sources),
            **_TOKENS,
        ),
    )
}
"""All metrics by their names."""

DEFAULT_METRICS = tuple(name for name in METRICS if name not in ("recall", "mrr", "ndcg"))
"""The metrics of an experiment that names none; of retrieval `evidence_coverage`, which weighs what each chunk has."""


def more_is_better(name: str, described: Mapping[str, Any] | None = None) -> bool:
    """Whether more of a metric is better; the description of an experiment knows of metrics that are not ours."""
    if name in METRICS:
        return not METRICS[name].not_better
    told = (described or {}).get(NOT_BETTER)
    return not (isinstance(told, list) and name in told)


def check_better(name: str, described: Mapping[str, Any] | None = None) -> None:
    """Refuse a metric of which more is not better; see `more_is_better`.

    Raises:
        OptionError: It is one.
    """
    if not more_is_better(name, described):
        why = METRICS[name].not_better if name in METRICS else ITS_FUNCTION
        raise OptionError(f"more {name} is not better: {why}; name a metric of the answers", name)
