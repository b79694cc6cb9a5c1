"""The cells of the grids of an experiment: impossible combinations are counted, equal ones are one cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from oprag.compare.controls import CONTROLS, kind_of
from oprag.compare.spec.axes import axes, has_effect, plain_value, takes_none
from oprag.compare.stores.named import STORE_NAMES
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


@dataclass(frozen=True, kw_only=True)
class Cell:
    """How every question of a data set is answered; data, embedder, store and model are names in the experiment."""

    data: str
    split: Split
    embedder: str
    search: SearchKind
    store: str
    context_options: ContextOptions
    options: MethodOptions
    model: str | None  # None where none is asked
    repeat: int

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.options.method

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
        """The cell with these values on all axes; raises an OptionError where they exclude each other."""
        of: dict[str, dict[str, Any]] = {"parts": {}, "context": {}, "method": {}}
        for name, axis in axes().items():
            of[axis.part][name] = values[name]
        parts = of["parts"]
        split = Split(*(parts.pop(name) for name in ("splitter", "chunk_size", "chunk_overlap"))).complete()
        if split.overlap is not None and split.size is not None and split.overlap >= split.size:
            raise OptionError(f"chunk_overlap={split.overlap} is not less than chunk_size={split.size}", split)
        context_options = ContextOptions(count_tokens=count_tokens, **of["context"])
        options = MethodOptions(prompts=prompts, **of["method"])
        return cls(split=split, context_options=context_options, options=options, **parts)

    def normal(self) -> Cell:
        """The cell with the default on each axis that has no effect, so that cells that do the same are equal."""
        values = self.values()
        defaults = {name: _NOTHING.get(name, axis.default) for name, axis in axes().items()}
        changes = {
            name: default
            for name, default in defaults.items()
            if values[name] != default and not has_effect(name, values)
        }
        if not changes:
            return self
        return Cell.of(values | changes, self.context_options.count_tokens, self.options.prompts)


_LARGEST = 10**18 - 1
# Keys hold it, so it must stay.
_NOTHING = {"embedder": ""}

Grid = Mapping[str, Sequence[Any]]
"""The values of each axis that is named."""


class Cells(NamedTuple):
    """The cells of an experiment, each once."""

    cells: tuple[Cell, ...]
    combinations: int  # of values in all grids
    impossible: Mapping[str, int]  # how many of them cannot be run, by reason
    repeated: int  # how many of them do the same as another one


def as_grids(given: Any) -> tuple[Grid, ...]:
    """One grid or several, with a list of values for each axis."""
    grids = [given] if isinstance(given, Mapping) else given
    if not isinstance(grids, list | tuple) or not grids or not all(isinstance(grid, Mapping) for grid in grids):
        raise ExperimentError(f"a grid must map axes to values, got {describe(given)}", given)
    return tuple(_as_grid(grid) for grid in grids)


def _as_grid(given: Mapping[str, Any]) -> Grid:
    check_names(given, axes(), what="axis")
    grid: dict[str, list[Any]] = {}
    for name, values in given.items():
        listed = list(values) if isinstance(values, list | tuple | range) else [values]
        if not listed:
            raise ExperimentError(f"the axis {name!r} has no values", values)
        typed = dict.fromkeys(_with_type(plain_value(axes()[name], value)) for value in listed)
        grid[name] = [value for _, value in typed]
    return grid


def _with_type(value: Any) -> tuple[type, Any]:
    """The value with its type, which tells 1 from True; refuses one that a results file cannot hold."""
    if not isinstance(value, str | int | float | tuple | None):
        raise ExperimentError(
            f"a value of an axis must be a text, a number or true or false, got {describe(value)}", value
        )
    if isinstance(value, int) and not -_LARGEST <= value <= _LARGEST:
        raise ExperimentError(f"a value of an axis must have at most 18 digits, got {value}", value)
    return type(value), value


def cells_of(experiment: Experiment) -> Cells:
    """All cells of an experiment; raises an ExperimentError where a value is invalid, or no combination can be run."""
    completed = [_completed(grid, experiment) for grid in experiment.grid]
    number = sum(prod(map(len, full.values())) for full in completed)
    # More are a slip of the pen, and would take minutes to be counted.
    if number > (most := limit("grid_combinations")):
        raise ExperimentError(
            f"the grid has {number:,} combinations, and there can be at most {most:,}; take fewer values, or several "
            f"grids as [[grid]] of what belongs together, or raise {variable('grid_combinations')}",
            number,
        )
    common = (experiment.token_counter, experiment.prompts)
    likelihood_models = {name for name, model in experiment.models.items() if model.gives_likelihoods}
    # By their values: hashing the prompts of every cell would take longer than everything else.
    cells: dict[tuple[Any, ...], Cell] = {}
    impossible: Counter[str] = Counter()
    repeated = 0
    for full in completed:
        for values in product(*full.values()):
            try:
                # As given, though it may have no effect: values that exclude each other are counted.
                cell = Cell.of(dict(zip(full, values, strict=True)), *common).normal()
            except OptionError as error:
                impossible[str(error)] += 1
                continue
            if reason := _impossible(cell, likelihood_models):
                impossible[reason] += 1
            else:
                known = len(cells)
                cells.setdefault(tuple(map(_with_type, cell.values().values())), cell)
                repeated += len(cells) == known
    if not cells:
        reasons = "; ".join(impossible)
        raise ExperimentError(f"no combination of the grid can be run: {reasons}", experiment.grid)
    return Cells(tuple(cells.values()), number, dict(impossible), repeated)


def _completed(grid: Grid, experiment: Experiment) -> dict[str, Sequence[Any]]:
    """The grid with the defaults of the axes that it does not name."""
    there_is: dict[str, Sequence[Any]] = {
        "data": list(experiment.data),
        "embedder": list(experiment.embedders),
        "model": [*experiment.models, None],
        "store": [*STORE_NAMES, *experiment.stores],
    }
    for name, names in there_is.items():
        for value in grid.get(name, ()):
            if value not in names:
                known = ", ".join(str(one) for one in names if one is not None) or "none"
                raise ExperimentError(
                    f"there is no {name} {describe(value)} in this experiment; there are: {known}", value
                )
    defaults = {"data": there_is["data"], "embedder": there_is["embedder"][:1], "model": there_is["model"][:1]}
    full = {name: grid.get(name) or defaults.get(name) or [axis.default] for name, axis in axes().items()}
    for name, values in full.items():
        for value in values:
            # Invalid in every combination: a typing error is not an impossible combination.
            try:
                _check_value(name, value)
            except OpragError as error:
                none = '; None is written "none"' if takes_none(axes()[name]) else ""
                raise ExperimentError(
                    f"the axis {name!r} cannot have the value {describe(value)}: {error}{none}", value
                ) from error
    return full


def _check_value(name: str, value: Any) -> None:
    """Refuse a value that its axis cannot have; values that exclude each other are counted later."""
    part = axes()[name].part
    if name == "method":
        check_choice(name, value, (*method_names(), *CONTROLS))
    if part == "context":
        ContextOptions(**{name: value})
    elif part == "method":
        MethodOptions(**{name: value})
    elif name == "search":
        check_choice(name, value, get_args(SearchKind))
    elif name == "splitter":
        Split(value).complete()
    elif name in ("chunk_size", "chunk_overlap", "repeat"):
        check_count(name, value, optional=name != "repeat", least=0 if name == "chunk_overlap" else 1)
    if name == "inner_method" or (name == "method" and value not in CONTROLS):
        check_needs(MethodOptions(method=value), embeddings=True, read_source=True)


def _impossible(cell: Cell, likelihood_models: Collection[str]) -> str | None:
    """Why a cell cannot be run; None where it can."""
    if reason := _wrong_model(cell, likelihood_models):
        return reason
    if cell.search != "dense" and cell.store != "index":
        return f"a vector store ranks by vectors, so search={cell.search} needs store=index"
    reads = kind_of(cell.method).reads is not None
    if reads and cell.context_options.k is None and cell.context_options.token_budget is None:
        return "neither k nor token_budget is set, so whole documents would be the context"
    if cell.method in CONTROLS:
        return None
    try:
        check_needs(cell.options, embeddings=True, read_source=True)
        cell.options.numbered(cell.context_options)
    except OptionError as error:
        return str(error)
    return None


def _wrong_model(cell: Cell, likelihood_models: Collection[str]) -> str | None:
    """Why the model of a cell cannot do what its method asks; None where it can."""
    writes = kind_of(cell.method).writes
    if cell.model is None and writes is not None:
        return f"method={cell.method} needs a model"
    if cell.model is not None and (cell.model in likelihood_models) != (writes == "likelihood"):
        does = "returns likelihoods and writes no answers" if cell.model in likelihood_models else "only writes"
        return f"the model {cell.model!r} {does}, so it cannot do method={cell.method}"
    return None
