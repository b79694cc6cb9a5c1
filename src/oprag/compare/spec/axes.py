"""The axes of a grid: those of experiments, and every option of the assembly and of the methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any, Literal, NamedTuple

from oprag.compare.controls import CONTROLS, kind_of
from oprag.errors import OptionError
from oprag.methods.options import MethodOptions
from oprag.methods.registry import OUR_METHODS
from oprag.options import ContextOptions, check_names, plain_number

__all__ = ["AVERAGED", "Axis", "Part", "axes", "check_axis", "has_effect", "plain_value", "takes_none"]

Part = Literal["parts", "context", "method"]

AVERAGED = ("seed", "repeat")
"""The axes that make no setting: the scores of a question are averaged over them first."""

# What stays the same in all cells: functions, what belongs to conversations, and how a run treats failures.
_FIXED = {
    ContextOptions: {"count_tokens"},
    MethodOptions: {"prompts", "condense", "max_concurrency", "on_error"},
}


class Axis(NamedTuple):
    """One thing that can be varied: an option of `ContextOptions` or `MethodOptions`, or a part of the experiment."""

    name: str
    part: Part
    default: Any  # None for data, embedder and model, whose default is all data sets, and the first of the others
    help: str


_FRACTIONS = {"similarity_threshold", "redundancy_threshold", "answer_threshold"}

_PARTS = (
    Axis("data", "parts", None, "The data sets, by their names; all of them by default."),
    Axis("splitter", "parts", "tokens", "How documents are split: tokens, words or recursive."),
    Axis("chunk_size", "parts", None, "Tokens in a chunk, or words; the default of the splitter."),
    Axis("chunk_overlap", "parts", None, "Tokens or words that neighbors share; the default of the splitter."),
    Axis("embedder", "parts", None, "The embedders, by their names; the first by default."),
    Axis("search", "parts", "dense", "How chunks are ranked: dense, bm25 or hybrid."),
    Axis("store", "parts", "index", "What finds the nearest vectors: index (exact), or a vector store."),
    Axis("model", "parts", None, "The models that answer, by their names; the first by default."),
    Axis("repeat", "parts", 1, "A number; with another one a model is asked again."),
)

# The methods of ours that read an option; all methods that ask a model read the other options.
_METHODS_WITH: dict[str, frozenset[str]] = {
    "inner_method": frozenset({"step_down", "reciprocal"}),
    "passage_tokens": frozenset({"map_reduce", "refine", "map_rerank"}),
    "collapse_tokens": frozenset({"map_reduce"}),
    "rank_by": frozenset({"map_rerank"}),
    "variants": frozenset({"step_down", "reciprocal"}),
    "answer_threshold": frozenset({"reciprocal"}),
    "source_token_budget": frozenset({"long_context", "self_route"}),
    "overflow": frozenset({"long_context", "self_route"}),
}
# Axes that have an effect together with some values of other axes alone.
_WITH_OTHERS: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "seed": lambda values: values["order"] == "random",
    "source_ranking": lambda values: values["order"] == "source",
    "min_chunks": lambda values: any(values[f"{kind}_threshold"] is not None for kind in ("similarity", "redundancy")),
}


@cache
def axes() -> dict[str, Axis]:
    """All axes by their names."""
    found = list(_PARTS)
    for kind, part in ((ContextOptions, "context"), (MethodOptions, "method")):
        for field in fields(kind):
            if field.name in _FIXED[kind]:
                continue
            found.append(Axis(field.name, part, field.default, field.metadata["help"]))  # type: ignore[arg-type]
    return {axis.name: axis for axis in found}


def check_axis(axis: str) -> None:
    """Refuse an axis that does not exist, or over which scores are averaged: its values cannot be compared."""
    check_names([axis], axes(), what="axis")
    if axis in AVERAGED:
        raise OptionError(f"scores are averaged over the axis {axis!r}, so its values are not compared", axis)


def has_effect(name: str, values: Mapping[str, Any]) -> bool:
    """Whether another value of this axis could give another answer, given the values on all axes."""
    method = values["method"]
    kind = kind_of(method)
    if name in ("data", "method"):
        return True
    if name in ("model", "repeat"):
        return kind.writes is not None
    if kind.reads is None:
        return False
    if axes()[name].part == "method":
        return kind.writes is not None and _reads(name, method, values["inner_method"])
    return name not in _WITH_OTHERS or _WITH_OTHERS[name](values)


def _reads(option: str, method: str, inner_method: str) -> bool:
    """Whether a method reads an option, itself or in its inner method."""
    used = {method, inner_method} if method in _METHODS_WITH["inner_method"] else {method}
    readers = _METHODS_WITH.get(option)
    # A method of the user's own may read any of them.
    return readers is None or not used.isdisjoint(readers) or not used.issubset((*OUR_METHODS, *CONTROLS))


def plain_value(axis: Axis, value: Any) -> Any:
    """A value as it is written in a grid: "none" stands for None where that is a value, since TOML has none."""
    value = plain_number(value)
    if axis.name in _FRACTIONS and type(value) in (int, float):
        return float(value) + 0.0  # so that 1 and 1.0, or 0 and -0, are one value
    return None if value == "none" and takes_none(axis) else value


def takes_none(axis: Axis) -> bool:
    """Whether None is a value of the axis."""
    return axis.default is None and axis.name not in ("data", "embedder")
