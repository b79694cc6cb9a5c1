"""The cells of an experiment: impossible combinations are skipped and counted, equivalent ones are merged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from oprag.compare.controls import CONTROLS, PIPELINE, kind_of
from oprag.compare.spec.axes import Axis, axes, has_effect, plain_value, takes_none
from oprag.compare.stores import STORE_NAMES
from oprag.errors import ExperimentError, OpragError, OptionError
from oprag.files.limits import limit, variable
from oprag.index.document_index import SearchKind
from oprag.index.splitting import Split
from oprag.masking import describe
from oprag.methods.options import MethodOptions
from oprag.methods.prompts import Prompts
from oprag.methods.registry import check_needs, method_names
from oprag.options import ContextOptions, check_choice, check_count, check_names
from oprag.tokens import TokenCounter

if TYPE_CHECKING:
    from oprag.compare.spec.experiment import Experiment

__all__ = ["Cell", "Cells", "Grid", "as_grids", "cells_of"]

_TOO_LARGE = 10**18  # for a number of a results file


@dataclass(frozen=True, kw_only=True)
class Cell:
    """The options for answering a data set; data, embedder, store and model are names in the experiment."""

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

    def values(self) -> dict[str, Any]:
        """The value on every axis."""
        split = self.split
        parts = vars(self) | {"splitter": split.splitter, "chunk_size": split.size, "chunk_overlap": split.overlap}
        options = {"context": self.context_options, "method": self.options}
        return {
            name: parts[name] if axis.part == "parts" else getattr(options[axis.part], name)
            for name, axis in axes().items()
        }

    @classmethod
    def of(cls, values: Mapping[str, Any], count_tokens: TokenCounter, prompts: Prompts) -> Cell:
        """The cell with these values on all axes; raises an OptionError if options contradict each other."""
        by_part: dict[str, dict[str, Any]] = {"parts": {}, "context": {}, "method": {}}
        for name, axis in axes().items():
            by_part[axis.part][name] = values[name]
        parts = by_part["parts"]
        split = Split(*(parts.pop(name) for name in ("splitter", "chunk_size", "chunk_overlap"))).complete()
        if split.overlap is not None and split.size is not None and split.overlap >= split.size:
            raise OptionError(f"chunk_overlap={split.overlap} must be less than chunk_size={split.size}", split)
        context_options = ContextOptions(count_tokens=count_tokens, **by_part["context"])
        options = MethodOptions(prompts=prompts, **by_part["method"])
        return cls(split=split, context_options=context_options, options=options, **parts)

    def normal(self) -> Cell:
        """The cell with defaults on all axes without effect, so that equivalent cells are equal."""
        values = self.values()
        # Stored keys contain the empty name of an embedder that is not used, so it must not change.
        defaults = {name: axis.default for name, axis in axes().items()} | {"embedder": ""}
        changes = {name: value for name, value in defaults.items() if not has_effect(name, values)}
        if all(values[name] == value for name, value in changes.items()):
            return self
        return Cell.of(values | changes, self.context_options.count_tokens, self.options.prompts)

    @property
    def problem(self) -> str | None:
        """Why the cell cannot be run; None if it can."""
        kind = kind_of(self.method)
        if self.model is None and kind.writes:
            return f"method={self.method} requires a model"
        if self.search != "dense" and self.store != "index":
            return f"vector stores only support dense search, so search={self.search} requires store=index"
        if kind.reads is not None and self.context_options.k is None and self.context_options.token_budget is None:
            return "neither k nor token_budget is set, so the context would be the whole documents"
        if self.method not in CONTROLS:
            try:
                check_needs(self.options, embeddings=True, read_source=True)
                self.options.numbered(self.context_options)
            except OptionError as error:
                return str(error)
        return None


Grid = Mapping[str, Sequence[Any]]
"""Values by axis name; other axes have their defaults."""


class Cells(NamedTuple):
    """The distinct cells of an experiment, and counts of combinations."""

    cells: tuple[Cell, ...]
    combinations: int  # number of combinations of values in all grids
    impossible: Mapping[str, int]  # number of combinations that cannot be run, by reason
    repeated: int  # number of combinations that are equivalent to another one


def as_grids(given: Any) -> tuple[Grid, ...]:
    """Convert one grid or a list of grids to a tuple of grids, with a list of values for each axis."""
    if given == ():
        return ()  # of an experiment with own pipelines alone
    grids = [given] if isinstance(given, Mapping) else given
    if not isinstance(grids, list | tuple) or not grids or not all(isinstance(grid, Mapping) for grid in grids):
        raise ExperimentError(f"a grid must map axes to values, got {describe(given)}", given)
    for grid in grids:
        check_names(grid, axes(), what="axis")
    return tuple({name: _values(axes()[name], values) for name, values in grid.items()} for grid in grids)


def _values(axis: Axis, given: Any) -> list[Any]:
    values = [plain_value(axis, value) for value in (given if isinstance(given, list | tuple | range) else [given])]
    if not values:
        raise ExperimentError(f"the axis {axis.name!r} has no values", given)
    for value in values:
        if not isinstance(value, str | int | float | None):
            raise ExperimentError(
                f"a value of an axis must be a string, a number, true or false, got {describe(value)}", value
            )
        if isinstance(value, int) and abs(value) >= _TOO_LARGE:
            raise ExperimentError(f"a value of an axis must have at most 18 digits, got {value}", value)
    # The type distinguishes 1 from True.
    return [value for _, value in dict.fromkeys((type(value), value) for value in values)]


def cells_of(experiment: Experiment) -> Cells:
    """All cells of an experiment; raises an ExperimentError if a value is invalid or no combination can be run."""
    completed = [_completed(grid, experiment) for grid in experiment.grid]
    number = sum(prod(map(len, full.values())) for full in completed)
    # More are probably a mistake, and would take minutes to check.
    if number > (maximum := limit("grid_combinations")):
        raise ExperimentError(
            f"the grid has {number:,} combinations, and the maximum is {maximum:,}; use fewer values, or several "
            f"smaller grids as [[grid]], or increase {variable('grid_combinations')}",
            number,
        )
    common = (experiment.token_counter, experiment.prompts)
    # Keyed by values: hashing the cells themselves, with their prompts, would be slow.
    cells: dict[tuple[Any, ...], Cell] = {}
    impossible: Counter[str] = Counter()
    for values in chain.from_iterable(product(*full.values()) for full in completed):
        try:
            # Check the values as given, even those without effect, so that contradictions are reported.
            cell = Cell.of(dict(zip(axes(), values, strict=True)), *common).normal()
        except OptionError as error:
            impossible[str(error)] += 1
            continue
        if cell.problem is not None:
            impossible[cell.problem] += 1
        else:
            cells.setdefault(tuple((type(value), value) for value in cell.values().values()), cell)
    repeated = number - impossible.total() - len(cells)
    for data, name in product(experiment.data, experiment.methods):
        default = {one: axis.default for one, axis in axes().items()}
        own = default | {"data": data, "method": f"{PIPELINE}{name}", "embedder": ""}
        cells[data, name] = Cell.of(own, *common)
        number += 1
    if not cells:
        raise ExperimentError(f"no combination of the grid can be run: {'; '.join(impossible)}", experiment.grid)
    return Cells(tuple(cells.values()), number, dict(impossible), repeated)


def _completed(grid: Grid, experiment: Experiment) -> dict[str, Sequence[Any]]:
    """The grid with defaults for the missing axes, in the order of axes; raises for invalid values."""
    names: dict[str, list[Any]] = {
        "data": list(experiment.data),
        "embedder": list(experiment.embedders),
        "model": [*experiment.models, None],
        "store": [*STORE_NAMES, *experiment.stores],
    }
    full: dict[str, Sequence[Any]] = {}
    for name, axis in axes().items():
        default = names[name] if name == "data" else names[name][:1] if axis.default is None and name in names else None
        full[name] = grid.get(name) or default or [axis.default]
        for value in full[name]:
            if name in names and value not in names[name]:
                known = ", ".join(str(one) for one in names[name] if one is not None) or "none"
                raise ExperimentError(f"unknown {name} {describe(value)}; this experiment has: {known}", value)
            # A value that is invalid in every combination is an error instead of an impossible combination.
            try:
                _check_value(axis, value)
            except OpragError as error:
                none = '; for None write "none"' if takes_none(axis) else ""
                message = f"invalid value {describe(value)} of the axis {name!r}: {error}{none}"
                raise ExperimentError(message, value) from error
    return full


def _check_value(axis: Axis, value: Any) -> None:
    """Raise if a value is invalid for its axis, regardless of the other axes."""
    name = axis.name
    if axis.part == "context":
        # Continuity alone has nothing to choose from.
        ContextOptions(**{"k": 1, name: value} if name == "continuity" else {name: value})
    elif axis.part == "method":
        MethodOptions(**{name: value})
    elif name == "search":
        check_choice(name, value, get_args(SearchKind))
    elif name == "splitter":
        Split(value).complete()
    elif name in ("chunk_size", "chunk_overlap", "repeat"):
        check_count(name, value, optional=name != "repeat", minimum=0 if name == "chunk_overlap" else 1)
    if name == "method":
        check_choice(name, value, (*method_names(), *CONTROLS))
    if name == "inner_method" or (name == "method" and value not in CONTROLS):
        check_needs(MethodOptions(method=value), embeddings=True, read_source=True)
