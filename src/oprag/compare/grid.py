"""The axes of a grid, and the cells of an experiment; equivalent combinations of values are merged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from itertools import chain, product
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from oprag._internal.files.reading import limit, variable
from oprag._internal.masking import describe
from oprag._internal.tokens import TokenCounter
from oprag.compare.experiment_methods import CONTROLS, PIPELINE, kind_of
from oprag.compare.stores import STORE_NAMES
from oprag.errors import ExperimentError, OptionError
from oprag.index.document_index import SearchKind
from oprag.index.splitting import Split, Splitter
from oprag.methods.options import MethodOptions
from oprag.methods.prompts import Prompts
from oprag.methods.registry import OUR_METHODS, check_needs, method_names
from oprag.options import ContextOptions, check_count, check_names, plain_number

if TYPE_CHECKING:
    from oprag.compare.experiment import Experiment

__all__ = ["AVERAGED", "Axis", "Cell", "Cells", "Grid", "as_grids", "axes", "cells_of", "check_axis", "has_effect"]

AVERAGED = ("seed", "repeat")
"""Axes that do not distinguish settings: the scores of each question are first averaged over them."""

# Options that are not axes: functions, options for conversations, how failures are handled, and two that a comparison
# does not vary yet.
_FIXED = {"count_tokens", "on_uncertain", "whole_source_tokens", "prompts", "condense", "max_concurrency", "on_error"}


class Axis(NamedTuple):
    """An axis of a grid."""

    name: str
    part: str  # "parts" of the experiment, or an option of the "context" or the "method"
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
    kind = kind_of(method := values["method"])
    if name in ("data", "method"):
        return True
    if name in ("model", "repeat"):
        return kind.writes and not kind.own
    if kind.reads is None or axes()[name].part != "method":
        return kind.reads is not None and (name not in _HAS_EFFECT or _HAS_EFFECT[name](values))
    used = {method, values["inner_method"]} if method in _METHODS_READING["inner_method"] else {method}
    # A custom method may read any option.
    custom = not used.issubset((*OUR_METHODS, *CONTROLS))
    return kind.writes and (custom or not used.isdisjoint(_METHODS_READING.get(name, used)))


_SPLIT = ("splitter", "chunk_size", "chunk_overlap")


def _normal(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values on all axes, with defaults where they have no effect, so that those of equivalent cells are equal."""
    # Stored keys contain the empty name of an embedder that is not used, so it must not change.
    defaults = {name: axis.default for name, axis in axes().items()} | {"embedder": ""}
    found = {name: values[name] if has_effect(name, values) else defaults[name] for name in axes()}
    return found | dict(zip(_SPLIT, Split(*(found[name] for name in _SPLIT)).complete(), strict=True))


@dataclass(frozen=True, kw_only=True)
class Cell:
    """The options for answering a data set; data, embedder, store and model are names in the experiment."""

    values: Mapping[str, Any]  # on all axes
    data: str
    split: Split
    embedder: str
    search: SearchKind
    store: str
    context_options: ContextOptions
    options: MethodOptions
    model: str | None  # None if no model is called
    repeat: int

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.options.method

    @property
    def caller(self) -> str | None:
        """The name of the model or the own pipeline that answers; None if neither does."""
        return self.method if kind_of(self.method).own else self.model

    @classmethod
    def of(cls, values: Mapping[str, Any], count_tokens: TokenCounter, prompts: Prompts) -> Cell:
        """The cell with these values; raises an OptionError if it cannot be run."""
        given: dict[str, dict[str, Any]] = {"parts": {}, "context": {}, "method": {}}
        for name, axis in axes().items():
            given[axis.part][name] = values[name]
        split = Split(*(given["parts"].pop(name) for name in _SPLIT))
        check_count("repeat", values["repeat"], optional=False)
        check_count("chunk_size", split.size, optional=False)
        check_count("chunk_overlap", split.overlap, optional=False, minimum=0)
        context = ContextOptions(count_tokens=count_tokens, **given["context"])
        options = MethodOptions(prompts=prompts, **given["method"])
        cell = cls(values=values, split=split, context_options=context, options=options, **given["parts"])
        kind = kind_of(cell.method)
        if (split.overlap or 0) >= (split.size or 0):
            raise OptionError(f"chunk_overlap={split.overlap} must be less than chunk_size={split.size}", split)
        if cell.caller is None and kind.writes:
            raise OptionError(f"method={cell.method} requires a model", cell)
        if cell.search != "dense" and cell.store != "index":
            raise OptionError(f"stores only support dense search, so search={cell.search} requires store=index", cell)
        if kind.reads is not None and context.k is None and context.token_budget is None:
            raise OptionError("neither k nor token_budget is set, so the context would be the whole documents", cell)
        if cell.method not in CONTROLS and not kind.own:
            check_needs(options, embeddings=True, read_source=True)
            options.numbered(context)
        return cell


Grid = Mapping[str, Sequence[Any]]
"""Values by axis name; other axes have their defaults."""


class Cells(NamedTuple):
    """The distinct cells of an experiment, and the number of combinations of values in all grids."""

    cells: tuple[Cell, ...]
    combinations: int


def as_grids(given: Any) -> tuple[Grid, ...]:
    """Convert one grid or a list of grids to a tuple of grids, with a list of values for each axis."""
    grids = given if isinstance(given, list | tuple) else [given]
    if not all(isinstance(grid, Mapping) for grid in grids):
        raise ExperimentError(f"a grid must map axes to values, got {describe(given)}", given)
    check_names(chain.from_iterable(grids), axes(), what="axis")
    return tuple({name: _values(axes()[name], values) for name, values in grid.items()} for grid in grids)


def _values(axis: Axis, given: Any) -> list[Any]:
    found = [plain_number(one) for one in (given if isinstance(given, list | tuple | range) else [given])]
    if not found:
        raise ExperimentError(f"the axis {axis.name!r} has no values", given)
    for value in found:
        if not isinstance(value, str | int | float | None):
            raise ExperimentError(f"a value of an axis must be a string, number or bool, got {describe(value)}", value)
    # TOML has no null.
    optional = axis.default is None and axis.name not in ("data", "embedder")
    return [*dict.fromkeys(None if optional and value == "none" else value for value in found)]


def cells_of(experiment: Experiment) -> Cells:
    """All cells of an experiment; raises an ExperimentError if a value is invalid, or values contradict each other."""
    grids = [_completed(grid, experiment) for grid in experiment.grid]
    number = sum(prod(map(len, grid.values())) for grid in grids)
    # More are probably a mistake, and would take minutes to check.
    if number > (maximum := limit("grid_combinations")):
        problem = f"the grid has {number:,} combinations, and the maximum is {maximum:,}; use fewer values, or increase"
        raise ExperimentError(f"{problem} {variable('grid_combinations')}", number)
    defaults = {name: axis.default for name, axis in axes().items()}
    pairs = product(experiment.data, experiment.methods)
    own = [{**defaults, "data": data, "method": f"{PIPELINE}{name}"} for data, name in pairs]
    given = (dict(zip(axes(), values, strict=True)) for grid in grids for values in product(*grid.values()))
    try:
        distinct = {
            tuple(one.values()): one for one in map(_normal, chain(given, ({**defaults, **one} for one in own)))
        }
        cells = [Cell.of(one, experiment.token_counter, experiment.prompts) for one in distinct.values()]
    except OptionError as error:
        raise ExperimentError(str(error), error.value) from error
    return Cells(tuple(cells), number + len(own))


def _completed(grid: Grid, experiment: Experiment) -> dict[str, Sequence[Any]]:
    """The grid with defaults for the missing axes, in the order of axes; raises for unknown names."""
    names: dict[str, Sequence[Any]] = {
        "data": [*experiment.data],
        "embedder": [*experiment.embedders],
        "model": [*experiment.models, None],
        "store": [*STORE_NAMES, *experiment.stores],
        "splitter": get_args(Splitter),
        "search": get_args(SearchKind),
        "method": [*method_names(), *CONTROLS],
        "inner_method": method_names(),
    }
    full: dict[str, Sequence[Any]] = {}
    for name, axis in axes().items():
        known = names.get(name)
        default = [axis.default] if known is None or axis.default is not None else known
        full[name] = grid.get(name) or (default if name == "data" else default[:1])
        if known is not None and (unknown := [value for value in full[name] if value not in known]):
            expected = ", ".join(one for one in known if one is not None) or "none"
            raise ExperimentError(f"unknown {name} {describe(unknown[0])}; expected one of {expected}", unknown[0])
    return full
