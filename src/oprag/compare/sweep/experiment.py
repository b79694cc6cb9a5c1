"""The experiment of a sweep over token budgets and orders, which shows the inverted U."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from oprag.compare.controls import kind_of
from oprag.compare.data.data_set import DataSet, whole_text
from oprag.compare.metrics.registry import check_better, metric_name, usual_metric
from oprag.compare.providers.embedder import EmbedderSpec
from oprag.compare.providers.model import ModelSpec
from oprag.compare.providers.names import LOCAL, counter_of, tokenizer_of
from oprag.compare.running.resolved import ResolvedExperiment
from oprag.compare.spec.experiment import Experiment
from oprag.errors import ExperimentError, OptionError
from oprag.index.splitting import Split, pieces_of
from oprag.masking import describe
from oprag.options import check_count
from oprag.tokens import TokenCounter, count

__all__ = ["sweep_experiment"]

_BUDGETS = tuple(1_024 * number for number in (1, 2, 4, 8, 16, 24, 32, 48))  # 1k to 48k, as in the paper
_ORDERS = ("source", "rank", "random")  # random is the control
_COVERAGE = "evidence_coverage"

_DATA = "questions"
_ARGUMENTS = {
    "token_budget": "budgets",
    "order": "orders",
    "seed": "seeds",
    "continuity": "continuity",
    "method": "method",
    "model": "model",
    "embedder": "embedder",
    "data": "data",
}
"""The argument of `sweep_experiment` that sets each of these axes."""

_BUDGET = re.compile(r"(\d[\d_]*)\s*(k?)", re.IGNORECASE)
_UNBOUNDED = {None: "it reads no context", "documents": "it reads whole documents"}
"""Why a method cannot be swept, by its input."""

_CANDIDATE_FACTOR = 1.5
_SAMPLE = 200_000  # characters to split, which takes about a quarter of a second
# A slice has at least 10,000 characters, and at least 20 chunks with 8 characters per token or word: the last chunk of
# a slice is short, so slices need many chunks.
_MIN_SLICE, _MIN_CHUNKS, _CHARACTERS_PER_TOKEN = 10_000, 20, 8


def sweep_experiment(
    data: DataSet,
    *,
    budgets: Sequence[int | str] = _BUDGETS,
    orders: Sequence[str] = _ORDERS,
    seeds: int = 3,
    model: Any = None,
    continuity: Sequence[float] = (0.0,),
    method: str | None = None,
    metric: str | None = None,
    embedder: Any = LOCAL,
    grid: Mapping[str, Any] | None = None,
    **others: Any,
) -> Experiment:
    """Make the experiment that answers the questions with each token budget in each order.

    Args:
        data: The data set with the questions.
        budgets: Token budgets of the context: numbers, or strings such as "1500" or "16k" (16 x 1,024 tokens).
        orders: Orders of the kept chunks.
        seeds: Number of random orders, if "random" is one of the orders.
        continuity: Values of `ContextOptions.continuity`.
        model: The model that answers, see `ModelSpec`; with None only the contexts are scored, by the evidence in them.
        method: The method; by default "stuff".
        metric: The metric in addition to `evidence_coverage`; by default one that fits the questions.
        embedder: The embedder, see `EmbedderSpec`.
        grid: Values of other axes, one for each, such as the splitter or a threshold. By default `k` is so large that
            the token budget limits the number of kept chunks; it is estimated from a sample of the documents.
        **others: Further arguments of `Experiment`.

    Raises:
        ExperimentError: The questions contain nothing to score, or the experiment is invalid.
        OptionError: An option is invalid or has no effect, or no answer could have a score of the metric.
        MissingExtraError: The splitter or the packaged tokenizer is not installed.
    """
    given: Any = data
    if not isinstance(given, DataSet):
        raise OptionError(f"data must be a data set, such as from read_data(), got {describe(given)}", given)
    tokens = sorted({_budget(one) for one in _listed("budgets", budgets, "[1024, 4096]")})
    orders = _listed("orders", orders, '["source", "rank"]')
    if not tokens or not orders:
        raise OptionError("budgets and orders must not be empty", (budgets, orders))
    check_count("seeds", seeds, optional=False)
    fixed = _fixed_values({} if grid is None else grid)
    method = _method(method, model)
    metric = _usual_metric(data, method) if metric is None else metric
    if "k" not in fixed:
        split = Split(fixed.get("splitter", "tokens"), fixed.get("chunk_size"), fixed.get("chunk_overlap"))
        counter = counter_of(others.get("count_tokens", "approximate"))
        # The same for all budgets, so that settings only differ in the budget.
        fixed["k"] = _candidates(data.documents, split.complete(), counter, tokens[-1])
    experiment = Experiment(
        data={_DATA: data},
        models={} if model is None else {_name(model, "model"): model},
        embedders={_name(embedder, "embedder"): embedder},
        metrics=[metric] if metric == _COVERAGE else [metric, _COVERAGE],
        grid={
            "method": method,
            "token_budget": tokens,
            "order": orders,
            "seed": list(range(1, seeds + 1)),
            "continuity": _listed("continuity", continuity, "[0, 0.3]"),
            **fixed,
        },
        **({"name": "sweep"} | others),
    )
    check_better(metric)
    scorable = ResolvedExperiment(experiment).scorable[metric_name(metric)]
    if not scorable.questions:
        raise OptionError(f"{metric} cannot be computed with method={method}: {scorable.reason}", metric)
    return experiment


def _budget(given: Any) -> int:
    """Parse a token budget, such as 1500, "1500" or "16k"."""
    if isinstance(given, str):
        found = _BUDGET.fullmatch(given.strip())
        tokens = int(found[1].replace("_", "")) * (1_024 if found[2] else 1) if found else 0
        if not tokens:
            raise OptionError(f"a budget must be a number of tokens such as 1500 or 16k, got {describe(given)}", given)
        return tokens
    check_count("a budget", given, optional=False)
    return int(given)


def _listed(name: str, given: Any, example: str) -> list[Any]:
    if isinstance(given, str | bytes | Mapping) or not hasattr(given, "__iter__"):
        raise OptionError(f"{name} must be a list such as {example}, got {describe(given)}", given)
    return list(given)


def _fixed_values(given: Any) -> dict[str, Any]:
    """The validated values of other axes, one for each."""
    if not isinstance(given, Mapping):
        raise OptionError(f"grid must map axes to their values, got {describe(given)}", given)
    for name, value in given.items():
        if name in _ARGUMENTS:
            raise OptionError(f"grid must not contain {name}; use the argument {_ARGUMENTS[name]}= of the sweep", name)
        if isinstance(value, list | tuple | range):
            raise OptionError(
                f"a sweep takes only one value of {name}, got {describe(value)}; use an experiment to vary it", name
            )
    for name, minimum in (("chunk_size", 1), ("chunk_overlap", 0)):
        check_count(name, given.get(name), minimum=minimum)
    inner = given.get("inner_method")
    if isinstance(inner, str):
        _check_bounded("inner_method", inner)
    return dict(given)


def _method(given: Any, model: Any) -> str:
    """The method of a sweep; by default one that fits the model."""
    if given is None:
        if model is None:
            return "context_only"
        return "stuff"
    if not isinstance(given, str):
        raise OptionError(f"method must be the name of a method, got {describe(given)}", given)
    _check_bounded("method", given)
    if model is not None and not kind_of(given).writes:
        raise OptionError(f"method={given} does not call a model; remove the model, or use another method", given)
    return given


def _check_bounded(name: str, method: str) -> None:
    reads = kind_of(method).reads
    if reads != "context":
        raise OptionError(
            f"{name}={method} cannot be swept over token budgets: {_UNBOUNDED[reads]}, regardless of the budget; use "
            "oprag compare to compare it with other methods",
            method,
        )


def _usual_metric(data: DataSet, method: str) -> str:
    """The default metric of a sweep."""
    writes = kind_of(method).writes
    if not writes and not any(question.evidence for question in data.questions):
        raise ExperimentError(
            "without a model the contexts are scored by the evidence in them, but no question has evidence; set a "
            "model, or add evidence to the questions",
            data.name,
        )
    if writes and not any(question.answers or question.labels for question in data.questions):
        raise ExperimentError(
            "no question has a gold answer, so answers cannot be scored; add answers to the questions", data.name
        )
    return usual_metric(data.questions, answered=writes)


def _candidates(
    documents: Mapping[str, str | Sequence[str]], split: Split, count_tokens: TokenCounter, budget: int
) -> int:
    """The estimated number of best-ranked chunks that fill a token budget, plus half.

    Chunks may be much shorter than the chunk size: by another token counter, a table of numbers may have a quarter of
    the tokens, and splitters that keep paragraphs make shorter chunks. So a sample of the documents is split, and the
    best-ranked chunks are assumed to be as long as the shorter half of its chunks. It is split with the packaged
    tokenizer, regardless of the embedder.
    """
    tokenizer = tokenizer_of(LOCAL).tokenizer
    pieces = pieces_of(dict(_sample(documents, split.size or 1)), tokenizer, split)
    lengths = sorted(count(window.text, count_tokens) for window, _ in pieces)
    shorter = lengths[: (len(lengths) + 1) // 2]
    mean = sum(shorter) / len(shorter) if shorter else 0
    return max(1, round(_CANDIDATE_FACTOR * budget / max(mean, 1)))


def _sample(documents: Mapping[str, str | Sequence[str]], size: int) -> Iterator[tuple[str, str]]:
    """Random slices of the documents; the seed is fixed, so that a continued sweep has the same k."""
    length = max(_MIN_SLICE, _MIN_CHUNKS * _CHARACTERS_PER_TOKEN * size)
    texts = [whole_text(document) for document in documents.values()]
    places = [(number, start) for number, text in enumerate(texts) for start in range(0, len(text), length)]
    random.Random(0).shuffle(places)
    taken = 0
    for number, start in places:
        if taken >= _SAMPLE:
            break
        part = texts[number][start : start + length]
        taken += len(part)
        yield f"{number}:{start}", part


def _name(given: Any, default: str) -> str:
    """The name of a model or embedder in tables: a string, the name of its specification, or the default."""
    if isinstance(given, ModelSpec | EmbedderSpec):
        given = given.name
    return given if isinstance(given, str) else default
