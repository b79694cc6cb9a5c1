"""The axes of a grid: parts of the experiment, and all options of the assembly and the methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any, NamedTuple

from oprag.compare.baselines import CONTROLS, kind_of
from oprag.errors import OptionError
from oprag.methods.options import MethodOptions
from oprag.methods.registry import OUR_METHODS
from oprag.options import ContextOptions, check_names

__all__ = ["AVERAGED", "Axis", "axes", "check_axis", "has_effect"]

AVERAGED = ("seed", "repeat")
"""Axes that do not distinguish settings: the scores of each question are first averaged over them."""

# Options that are not axes: functions, options for conversations, how failures are handled, and two that a comparison
# does not vary yet.
_FIXED = {"count_tokens", "on_uncertain", "whole_source_tokens", "prompts", "condense", "max_concurrency", "on_error"}


class Axis(NamedTuple):
    """An axis of a grid: an option of `ContextOptions` or `MethodOptions`, or a part of the experiment."""

    name: str
    part: str  # "parts", "context" or "method"
    default: Any  # None for data (all data sets) and for embedder and model (the first one)
    help: str


_PARTS = (
    Axis("data", "parts", None, "Names of data sets; all by default."),
    Axis("splitter", "parts", "tokens", "How to split documents: tokens, words or recursive."),
    Axis("chunk_size", "parts", None, "Tokens or words per chunk; by default that of the splitter."),
    Axis("chunk_overlap", "parts", None, "Overlap of adjacent chunks; by default that of the splitter."),
    Axis("embedder", "parts", None, "Names of embedders; the first by default."),
    Axis("search", "parts", "dense", "How to rank chunks: dense, bm25 or hybrid."),
    Axis("store", "parts", "index", "Vector search: index (exact), or a vector store."),
    Axis("model", "parts", None, "Names of the models that answer; the first by default."),
    Axis("repeat", "parts", 1, "Repeat number; the models are called again for each number."),
)
# Built-in methods that read an option; options not listed are read by all methods that call a model.
_METHODS_READING: dict[str, set[str]] = {
    "inner_method": {"step_down", "reciprocal"},
    "passage_tokens": {"map_reduce", "refine", "map_rerank"},
    "collapse_tokens": {"map_reduce"},
    "rank_by": {"map_rerank"},
    "variants": {"step_down", "reciprocal"},
    "answer_threshold": {"reciprocal"},
    "source_token_budget": {"long_context", "self_route"},
    "overflow": {"long_context", "self_route"},
}
# Axes that only have an effect with certain values of other axes.
_HAS_EFFECT: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "seed": lambda values: values["order"] == "random",
    "source_ranking": lambda values: values["order"] == "source",
    "min_chunks": lambda values: {values["similarity_threshold"], values["redundancy_threshold"]} != {None},
}


@cache
def axes() -> dict[str, Axis]:
    """All axes by name."""
    found = list(_PARTS)
    for part, kind in (("context", ContextOptions), ("method", MethodOptions)):
        options = (field for field in fields(kind) if field.name not in _FIXED)
        found += [Axis(one.name, part, one.default, one.metadata["help"]) for one in options]
    return {axis.name: axis for axis in found}


def check_axis(axis: str) -> None:
    """Reject an unknown axis, and an axis that scores are averaged over, whose values cannot be compared."""
    check_names([axis], axes(), what="axis")
    if axis in AVERAGED:
        raise OptionError(f"scores are averaged over the axis {axis!r}, so its values cannot be compared", axis)


def has_effect(name: str, values: Mapping[str, Any]) -> bool:
    """Whether another value of this axis could change the answer, given the values of all axes."""
    method = values["method"]
    kind = kind_of(method)
    if name in ("data", "method"):
        return True
    if name in ("model", "repeat"):
        return kind.writes and not kind.own
    if kind.reads is None:
        return False
    if axes()[name].part == "method":
        used = {method, values["inner_method"]} if method in _METHODS_READING["inner_method"] else {method}
        # A custom method may read any option.
        custom = not used.issubset((*OUR_METHODS, *CONTROLS))
        return kind.writes and (custom or not used.isdisjoint(_METHODS_READING.get(name, used)))
    return name not in _HAS_EFFECT or _HAS_EFFECT[name](values)
