"""Sweeps over token budgets and orders: the curve of the inverted U, from one set of questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oprag.compare.data.data_set import DataSet
from oprag.compare.providers.embedder import EmbedderSpec
from oprag.compare.providers.model import ModelSpec
from oprag.compare.providers.names import LOCAL, counter_of
from oprag.compare.spec.experiment import Experiment
from oprag.compare.spec.validation import validated
from oprag.compare.sweep.checks import as_budget, budgets_of, check_fixed, check_metric, method_of, orders_of
from oprag.compare.sweep.depth import candidates
from oprag.errors import ExperimentError, OptionError
from oprag.index.splitting import Split
from oprag.masking import describe
from oprag.options import check_count

__all__ = ["BUDGETS", "ORDERS", "sweep_experiment", "sweep_metric"]

BUDGETS = tuple(map(as_budget, ("1k", "2k", "4k", "8k", "16k", "24k", "32k", "48k")))
"""The budgets of a sweep by default, in tokens: 1k to 48k, as in the paper."""

ORDERS = ("source", "rank", "random")
"""The orders of a sweep by default; the random one is the control."""

_DATA = "questions"


def sweep_metric(data: DataSet, *, with_model: bool, likelihood: bool = False) -> str:
    """What a sweep is scored by, if nothing else is asked for.

    Args:
        data: The questions.
        with_model: Whether a model answers; else contexts alone are scored.
        likelihood: Whether the model says how likely answers are.

    Raises:
        ExperimentError: The questions have nothing that could be scored.
    """
    if not with_model:
        if any(question.evidence for question in data.questions):
            return "evidence_coverage"
        raise ExperimentError(
            "without a model the contexts are scored by the evidence that is in them, and no question has evidence; "
            "give a model, or say where the answers stand",
            data.name,
        )
    answered = any(question.answers for question in data.questions)
    choices = [question.labels is not None for question in data.questions]
    if not answered and (likelihood or not any(choices)):
        raise ExperimentError("no question has an answer to score the model's by", data.name)
    if likelihood:
        return "answer_likelihood"
    return "choice_accuracy" if all(choices) or not answered else "token_f1"


def sweep_experiment(
    data: DataSet,
    *,
    budgets: Sequence[int | str] = BUDGETS,
    orders: Sequence[str] = ORDERS,
    seeds: int = 3,
    model: Any = None,
    method: str | None = None,
    metric: str | None = None,
    embedder: Any = LOCAL,
    grid: Mapping[str, Any] | None = None,
    **others: Any,
) -> Experiment:
    """The experiment that answers the questions under each budget in each order.

    Args:
        data: The questions.
        budgets: The most tokens of the context: numbers, or texts that `as_budget` reads.
        orders: How the kept chunks stand.
        seeds: How many random orders are drawn, where that is one of the orders.
        model: What answers, see `ModelSpec`; None scores the contexts alone, by the evidence that is in them.
        method: How the model answers, by default "stuff"; one that gives likelihoods has a method of its own.
        metric: What is scored besides the share of the evidence that was found; by default what `sweep_metric` says.
        embedder: What embeds, see `EmbedderSpec`.
        grid: Values of other axes, one of each, such as the splitter or a threshold. `k` is by default so large that
            the budget decides, see `oprag.compare.sweep.depth`.
        **others: What else `Experiment` takes.

    Raises:
        ExperimentError: The questions have nothing that could be scored, or the experiment cannot be.
        OptionError: An option has a value that it cannot have or that would have no effect, or the metric is one that
            no answer would have.
        MissingExtraError: The splitter or the packaged tokenizer is not installed.
    """
    given: Any = data
    if not isinstance(given, DataSet):
        raise OptionError(f"data must be a data set, as read_data() reads it, got {describe(given)}", given)
    budgets, orders = budgets_of(budgets), orders_of(orders)
    if not budgets or not orders:
        raise OptionError("a sweep must have budgets and orders", (budgets, orders))
    check_count("seeds", seeds, optional=False)
    fixed = check_fixed({} if grid is None else grid)
    likelihood = model is not None and validated(ModelSpec, model, place="model").gives_likelihoods
    kind = {"with_model": model is not None, "likelihood": likelihood}
    method = method_of(method, **kind)
    if metric is None:
        metric = sweep_metric(data, **kind)
    else:
        check_metric(metric, data, **kind)
    if "k" not in fixed:
        split = Split(fixed.get("splitter", "tokens"), fixed.get("chunk_size"), fixed.get("chunk_overlap"))
        counter = counter_of(others.get("count_tokens", "approximate"))
        # The same for all budgets, so that they differ in the budget alone.
        fixed["k"] = candidates(data.documents, split, counter, max(budgets))
    return Experiment(
        data={_DATA: data},
        models={} if model is None else {_name(model, "model"): model},
        embedders={_name(embedder, "embedder"): embedder},
        metrics=list(dict.fromkeys((metric, "evidence_coverage"))),
        grid={
            "method": method,
            "token_budget": budgets,
            "order": orders,
            "seed": list(range(1, seeds + 1)),
            **fixed,
        },
        **({"name": "sweep"} | others),
    )


def _name(given: Any, otherwise: str) -> str:
    """What something is called in tables: as it was given, where that was a name, or as its specification says."""
    if isinstance(given, ModelSpec | EmbedderSpec):
        given = given.name
    return given if isinstance(given, str) else otherwise
