"""Custom metrics: user-defined Python functions that score an answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from inspect import iscoroutinefunction
from typing import Any, Literal, TypeVar

from oprag.compare.metrics.registry import ITS_FUNCTION, METRICS, Metric, ScoredAnswer
from oprag.compare.providers.names import load_function, qualified_name
from oprag.errors import ExperimentError
from oprag.masking import describe
from oprag.options import check_bool, check_choice, check_count

__all__ = ["RESERVED", "as_metric", "check_metric_names", "metric", "metric_name"]

_OF_PHASES = ("seconds", "seconds_median", "seconds_sd", "cpu_percent", "peak_memory_bytes", "memory_growth_bytes")

RESERVED = frozenset(
    (
        *(
            "cells",
            "asked",
            "answered",
            "failed",
            "remaining",
            "cut_short",
            "empty",
            "calls",
            "tokens",
            "money",
            "seconds",
        ),
        *("input_tokens", "output_tokens", "cached_tokens", "embedded_tokens", "context_tokens", "context_chunks"),
        *("question_id", "question", "gold_answers", "documents", "status", "answer", "error", "message", "notes"),
        *("route", "estimated", "cell", "experiment", "evidence_spans", "spread"),
        *(f"{phase}_{what}" for phase in ("indexing", "retrieval", "generation") for what in _OF_PHASES),
    )
)
"""Result columns that are neither axes nor metrics."""

Scoring = TypeVar("Scoring", bound=Callable[[ScoredAnswer], Any])


def metric(
    *, of: Literal["answer", "context"] = "answer", higher_is_better: bool = True, version: int = 1
) -> Callable[[Scoring], Scoring]:
    """Declare what a function scores; needed only if the defaults do not fit, since any function can be a metric.

    Args:
        of: Whether it scores answers or contexts. A context metric is called once for all answers with the same
            context, and may only read the context and the question.
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
    name = given if isinstance(given, str) else qualified_name(given, "a metric")
    return name if ":" not in name else name.rpartition(":")[2].rpartition(".")[2]


def check_metric_names(given: Sequence[Any], judges: Collection[str] = (), taken: Collection[str] = ()) -> None:
    """Reject unknown metrics, and names that clash with other metrics, judges or columns.

    Raises:
        ExperimentError: A name is unknown, reserved or used twice, or a function is async or has no name.
    """
    for name in judges:
        if name not in given:
            raise ExperimentError(f"the judge {describe(name)} is not among the metrics; add it to `metrics`", name)
        if name in METRICS:
            raise ExperimentError(f"a metric named {name!r} already exists; use a different name for the judge", name)
    names: set[str] = set()
    for one in given:
        name = metric_name(one)
        _check_name(one, name, (*METRICS, *judges))
        if name in RESERVED or name in taken:
            raise ExperimentError(
                f"a metric cannot be named {name!r}: results have a column with this name; use a different name",
                name,
            )
        if name in names:
            raise ExperimentError(f"two metrics are named {name!r}; use different names", name)
        names.add(name)


def _check_name(given: Any, name: str, known: Collection[str]) -> None:
    if given == name and name not in known:
        choices = f"use one of {', '.join(known)}, or a function as MODULE:FUNCTION"
        raise ExperimentError(f"unknown metric {describe(name)}; {choices}", name)
    if given != name and iscoroutinefunction(given):
        raise ExperimentError(f"a metric must not be async, got {describe(given)}; pass a sync function", given)
    if given != name and name in known:
        raise ExperimentError(f"a metric named {name!r} already exists; use a different name", name)
    if not name.isidentifier():
        raise ExperimentError(f"a metric must be a name or MODULE:FUNCTION, got {describe(given)}", given)


def as_metric(given: Any) -> Metric:
    """Resolve a metric given by name, as MODULE:FUNCTION (the module is imported) or as a function.

    Raises:
        ExperimentError: The function does not exist.
    """
    if isinstance(given, str) and ":" not in given:
        return METRICS[given]
    score = load_function(given) if isinstance(given, str) else given
    function = qualified_name(score, "a metric") if callable(given) else given
    return Metric(
        name=metric_name(given), score=score, function=function, **getattr(score, "__metric__", {"rule": "1"})
    )
