"""What cannot be swept, refused before anything is spent on it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from oprag.compare.data.data_set import DataSet
from oprag.compare.metrics.registry import METRICS, check_better
from oprag.compare.spec.controls import kind_of
from oprag.errors import OptionError
from oprag.masking import describe
from oprag.options import check_count, check_text

__all__ = ["as_budget", "budgets_of", "check_fixed", "check_metric", "method_of", "orders_of"]

_UNBOUNDED = {None: "it reads no context", "documents": "it reads whole documents"}
"""What a method may read that no budget bounds."""

_OWN = {
    "token_budget": "budgets",
    "order": "orders",
    "seed": "seeds",
    "method": "method",
    "model": "model",
    "embedder": "embedder",
    "data": "data",
}
"""The axes that a sweep has arguments for."""

_BUDGET = re.compile(r"(\d[\d_]*)\s*(k?)", re.IGNORECASE)
_K = 1_024


def as_budget(text: str) -> int:
    """A token budget as people write it: "16k" is 16 x 1,024 tokens, "1500" is 1,500.

    Raises:
        OptionError: It is none.
    """
    found = _BUDGET.fullmatch(text.strip())
    tokens = int(found[1].replace("_", "")) * (_K if found[2] else 1) if found else 0
    if not tokens:
        raise OptionError(f"a budget must be a number of tokens such as 1500 or 16k, got {describe(text)}", text)
    return tokens


def budgets_of(given: Any) -> list[int]:
    """Token budgets, each once, from the least to the largest.

    Args:
        given: Numbers of tokens, or texts that `as_budget` reads.

    Raises:
        OptionError: They are no list, or one is no budget.
    """
    budgets = [as_budget(one) if isinstance(one, str) else one for one in _listed("budgets", given, "[1024, 4096]")]
    for budget in budgets:
        check_count("a budget", budget, optional=False)
    return sorted(set(budgets))


def orders_of(given: Any) -> list[str]:
    """Orders, each once.

    Raises:
        OptionError: They are no list of names; which names there are, the experiment says.
    """
    orders = _listed("orders", given, '["source", "rank"]')
    for order in orders:
        if not isinstance(order, str):
            raise OptionError(f"an order must be a name such as source, got {describe(order)}", order)
    return list(dict.fromkeys(orders))


def check_fixed(given: Any) -> dict[str, Any]:
    """The values of other axes, one of each.

    Raises:
        OptionError: They are no mapping, an axis has several values, or is one that a sweep has an argument for.
    """
    if not isinstance(given, Mapping):
        raise OptionError(f"grid must map axes to their values, got {describe(given)}", given)
    for name, value in given.items():
        if name in _OWN:
            raise OptionError(f"grid cannot have {name}: a sweep has {_OWN[name]}= for it", name)
        if isinstance(value, list | tuple | range):
            raise OptionError(f"a sweep has one value of {name}; use an experiment file to vary it", name)
    for name, least in (("chunk_size", 1), ("chunk_overlap", 0)):
        check_count(name, given.get(name), least=least)
    inner = given.get("inner_method")
    if isinstance(inner, str):
        _check_bounded("inner_method", inner)
    return dict(given)


def method_of(given: str | None, *, with_model: bool, likelihood: bool) -> str:
    """The method of a sweep.

    Args:
        given: What was asked for; None for what fits.
        with_model: Whether a model answers; else contexts alone are scored.
        likelihood: Whether the model says how likely answers are.

    Raises:
        OptionError: It would have no effect, or no budget bounds what it reads.
    """
    if given is None:
        return "stuff" if with_model and not likelihood else "answer_likelihood" if likelihood else "context_only"
    if not isinstance(given, str):
        raise OptionError(f"method must be the name of a method, got {describe(given)}", given)
    if not with_model:
        if kind_of(given).writes is None:
            return given
        raise OptionError(
            f"method={given} has no effect without a model, which would answer by it: give a model", given
        )
    _check_bounded("method", given)
    if likelihood:
        if given == "answer_likelihood":
            return given
        raise OptionError(
            f"method={given} has no effect: this model says how likely answers are, and writes none; leave it out",
            given,
        )
    if kind_of(given).writes is None:
        raise OptionError(f"method={given} asks no model: leave the model out, or take another method", given)
    if kind_of(given).writes == "likelihood":
        raise OptionError(
            f"method={given} needs a model that gives likelihoods, gguf:local, gguf:FILE or transformers:FOLDER", given
        )
    return given


def check_metric(metric: Any, data: DataSet, *, with_model: bool, likelihood: bool) -> None:
    """Refuse a metric that no answer of the sweep would have, or of which more is not better.

    Args:
        metric: Its name.
        data: The questions.
        with_model: Whether a model answers; else contexts alone are scored.
        likelihood: Whether the model says how likely answers are.

    Raises:
        OptionError: It is such a one, or there is none of that name.
    """
    check_text("metric", metric)
    if metric not in METRICS:
        raise OptionError(f"there is no metric {describe(metric)}; there are {', '.join(METRICS)}", metric)
    check_better(metric)
    wanted = METRICS[metric]
    if wanted.of == "likelihood" and not likelihood:
        raise OptionError(
            f"{metric} needs a model that gives likelihoods, gguf:local, gguf:FILE or transformers:FOLDER", metric
        )
    if wanted.of == "answer" and not with_model:
        raise OptionError(f"{metric} scores answers, and without a model there are none: give a model", metric)
    if wanted.of == "answer" and likelihood:
        raise OptionError(f"{metric} scores answers, and this model says how likely they are, and writes none", metric)
    if not any(wanted.has(question) for question in data.questions):
        raise OptionError(f"{metric} cannot be computed: no question has {wanted.needs}", metric)


def _check_bounded(name: str, method: str) -> None:
    reads = kind_of(method).reads
    if reads != "context":
        raise OptionError(
            f"{name}={method} cannot be swept over token budgets: {_UNBOUNDED[reads]}, whatever the budget; oprag "
            "compare holds it against others",
            method,
        )


def _listed(name: str, given: Any, example: str) -> Sequence[Any]:
    if isinstance(given, str | bytes | Mapping) or not hasattr(given, "__iter__"):
        raise OptionError(f"{name} must be a list such as {example}, got {describe(given)}", given)
    return list(given)
